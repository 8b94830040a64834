import { BackendError } from "../../checkpoint/records/backend.js";
import { Batcher } from "../../concurrency.js";
import type { LoadPackage } from "../../optional-peer.js";
import { ServerConnection, type ServerSettings } from "../server.js";
import { type Commands, commandsOf, type RedisClient } from "./client.js";
import { connect } from "./connect.js";
import { type Durability, parseFacts, problemOf, type ServerFacts, waitFor } from "./facts.js";
import { answered, failures, isUnknownScript, Unconfirmed } from "./failure.js";
import { commandOf, type Script, scripts } from "./scripts.js";

/** What a connection needs from its store. */
export interface ConnectionSettings extends ServerSettings {
  /** The user's client, or the address of a server. */
  readonly client: RedisClient | string;
  readonly prefix: string;
  readonly durability: Durability;
  readonly load: LoadPackage | undefined;
}

/** How many hash tags a cluster gets: enough to spread the runs over its nodes. */
const TAGS = 64;

/** How many save calls may be under way per tag; saves that arrive meanwhile share the next call. */
const SAVES_UNDER_WAY = 8;

/** What was learned about a server on first use. */
interface Server {
  readonly tags: readonly string[];
  /** The command that waits until a save is durable; `undefined` if the reply to the save already means that. */
  readonly wait: readonly string[] | undefined;
}

/** The server of a store, inspected on first use. */
export class Connection extends ServerConnection<Commands, ConnectionSettings> {
  protected readonly store = "RedisStore";
  protected readonly failures = failures;
  #server: Server | undefined;
  /** Combines concurrent saves of one tag. */
  readonly #batchers = new Map<string, Batcher<readonly string[], unknown>>();

  /** The hash tag of the keys of a run, or of anything else that has a name. */
  async tagOf(name: string): Promise<string> {
    const tags = this.#server?.tags ?? (await this.tags());
    return tags[tags.length === 1 ? 0 : hashOf(name) % tags.length] ?? "";
  }

  /** All hash tags. */
  async tags(): Promise<readonly string[]> {
    const server = this.#server ?? (await this.#with(async () => this.#server));
    return server?.tags ?? [];
  }

  /** Calls a script. */
  call(script: Script, tag: string, ...args: readonly string[]): Promise<unknown> {
    return this.#with((commands) => call(commands, script, tag, args));
  }

  /** Calls the script that saves; resolves once the save is as durable as the store promises. */
  async save(tag: string, args: readonly string[]): Promise<unknown> {
    this.checkWritable();
    let batcher = this.#batchers.get(tag);
    if (batcher === undefined) {
      batcher = new Batcher({
        many: (all) => this.#saveAll(tag, all.flat()),
        isItemFault: (error) => error instanceof BackendError && !error.unsure,
        sizeOf: (one) => one.reduce((sum, { length }) => sum + length, 0),
        maxRunning: SAVES_UNDER_WAY,
      });
      this.#batchers.set(tag, batcher);
    }
    return batcher.run(args);
  }

  /** Facts about the server, and what may make it lose runs. */
  async facts(): Promise<{ readonly facts: ServerFacts; readonly problem: string | undefined }> {
    return this.#with(async (commands) => {
      const facts = await this.#ask(commands);
      return { facts, problem: await problemOf(facts, (name) => this.#setting(commands, name)) };
    });
  }

  protected async connect(): Promise<Commands> {
    const { client, statementTimeout, load } = this.settings;
    let made: Commands | undefined;
    const onEnd = (): void => {
      if (made !== undefined && made === this.connected) this.forget();
    };
    made =
      typeof client === "string"
        ? await connect({ url: client, statementTimeout, onEnd }, load)
        : commandsOf(client);
    try {
      this.#server ??= await this.#answered(this.#inspect(made));
      return made;
    } catch (error) {
      made.drop();
      throw error;
    }
  }

  protected disconnect(commands: Commands): void {
    commands.drop();
  }

  #with<T>(action: (commands: Commands) => Promise<T>): Promise<T> {
    return this.with((commands) => this.#answered(action(commands)));
  }

  /** Waits for a promise; if it takes too long, drops the connection. */
  #answered<T>(promise: Promise<T>): Promise<T> {
    const { statementTimeout, client } = this.settings;
    return answered(statementTimeout, promise, () => {
      if (typeof client !== "string") return;
      this.connected?.drop();
      this.forget();
    });
  }

  /** Any tag will do for a question to a server or to one node of a cluster. */
  get #anyTag(): string {
    return `{${this.settings.prefix}:0}`;
  }

  async #ask(commands: Commands): Promise<ServerFacts> {
    return parseFacts(String(await call(commands, scripts.facts, this.#anyTag, [])));
  }

  /** A setting of the server; `"?"` if this user may not see it. */
  async #setting(commands: Commands, name: string): Promise<string> {
    const [reply] = await commands.together(this.#anyTag, [["CONFIG", "GET", name]]);
    return reply instanceof Error ? "?" : String(Object.values(Object(reply)).at(-1) ?? "");
  }

  async #inspect(commands: Commands): Promise<Server> {
    const { prefix, durability, statementTimeout, readOnly } = this.settings;
    const facts = await this.#ask(commands);
    // Derived from the server, so that all its users agree.
    const count = facts.isCluster ? TAGS : 1;
    const tags = Array.from({ length: count }, (_, index) => `{${prefix}:${index}}`);
    const setting = (name: string): Promise<string> => this.#setting(commands, name);
    const wait = readOnly ? undefined : await waitFor(facts, durability, statementTimeout, setting);
    return { tags, wait };
  }

  /**
   * Sends several saves in one call and then, if the store promises more than the server's answer, waits
   * until they are durable. WAIT and WAITAOF cover only the writes of their own connection: the first and
   * last command show that all went over the same one. The extra write makes them wait for everything before
   * it, even if a retried save turns out to be done already.
   */
  #saveAll(tag: string, args: readonly string[]): Promise<unknown[]> {
    return this.#with(async (commands) => {
      const wait = this.#server?.wait;
      if (wait === undefined) return (await call(commands, scripts.save, tag, args)) as unknown[];
      const send = (isKnown: boolean): Promise<unknown[]> =>
        commands.together(tag, [
          ["CLIENT", "ID"],
          commandOf(scripts.save, isKnown, tag, args),
          commandOf(scripts.touch, isKnown, tag, []),
          wait,
          ["CLIENT", "ID"],
        ]);
      let replies = await send(true);
      if (replies.some(isUnknownScript)) replies = await send(false);
      const failure = replies.find((reply) => reply instanceof Error);
      if (failure !== undefined) throw failure;
      const [before, saved, , waited, after] = replies;
      if (before !== after) throw new Error("the connection was lost while it saved");
      if (Number([waited].flat()[0]) < 1) {
        const what = wait[0] === "WAIT" ? "no replica has" : "the append-only file does not have";
        throw new Unconfirmed(`${what} what was saved, after ${wait.at(-1)} ms`);
      }
      return saved as unknown[];
    });
  }
}

/** Calls a script. */
async function call(
  commands: Commands,
  script: Script,
  tag: string,
  args: readonly string[],
): Promise<unknown> {
  try {
    return await commands.send(tag, commandOf(script, true, tag, args));
  } catch (error) {
    if (!isUnknownScript(error)) throw error;
    return commands.send(tag, commandOf(script, false, tag, args));
  }
}

/** The FNV-1a hash of a name. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}
