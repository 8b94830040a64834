import { isUnknownScript } from "./failure.js";
import type { Script } from "./scripts.js";

/** The part of ioredis's `Redis` or `Cluster` that is used. */
export interface IoRedisClient {
  /** Sends one command. */
  call(command: string, ...args: string[]): Promise<unknown>;
  /** Several commands, sent together on one connection. */
  pipeline(commands: string[][]): {
    /** Sends them; returns an error or a reply for each. */
    exec(): Promise<[error: Error | null, reply: unknown][] | null>;
  };
}

/** The part of a client or cluster of `redis` 5 that is used. */
export interface NodeRedisClient {
  /** Calls a script by its SHA-1. */
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  /** Calls a script by its text. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  /** Sends one command. For a cluster, the routing key and whether the command only reads come first. */
  sendCommand: unknown;
  /** Whether it was connected. */
  readonly isOpen: boolean;
  /** Connects it. */
  connect(): Promise<unknown>;
}

/** The client of a `RedisStore`: a client or a cluster of `ioredis` 5 or `redis` 5. */
export type RedisClient = IoRedisClient | NodeRedisClient;

/** A script with the hash tag of its keys, and its arguments. */
export interface Call {
  readonly script: Script;
  readonly tag: string;
  readonly args: readonly string[];
}

/** A connection to a server, through either package. */
export interface Commands {
  /** Calls a script: by its hash, or by its text if the server does not have it. */
  call(call: Call): Promise<unknown>;
  /** Sends commands back to back on the connection for a tag; errors are returned among the replies. */
  together(tag: string, commands: readonly (readonly string[])[]): Promise<unknown[]>;
  /** Drops a connection that the store made; pending calls get no reply. */
  drop(): void;
}

/** Whether a value can be such a client. */
export function isRedisClient(value: unknown): value is RedisClient {
  if (typeof value !== "object" || value === null) return false;
  const has = (method: string): boolean => typeof Reflect.get(value, method) === "function";
  return (has("call") && has("pipeline")) || (has("evalSha") && has("eval") && has("sendCommand"));
}

/** The command that calls a script by its hash or, if the server does not know that, by its text. */
export function commandOf({ script, tag, args }: Call, isKnown: boolean): string[] {
  return [isKnown ? "evalsha" : "eval", isKnown ? script.sha1 : script.text, "1", tag, ...args];
}

/** The commands of a client. */
export function commandsOf(client: RedisClient, drop: () => void = () => {}): Commands {
  listenTo(client);
  return "evalSha" in client ? ofNodeRedis(client, drop) : ofIoRedis(client, drop);
}

function ofIoRedis(client: IoRedisClient, drop: () => void): Commands {
  const send = (call: Call, isKnown: boolean): Promise<unknown> => {
    const [name = "", ...args] = commandOf(call, isKnown);
    return client.call(name, ...args);
  };
  return {
    drop,
    call: (call) => retriedByText((isKnown) => send(call, isKnown)),
    together: async (_tag, commands) => {
      // A cluster routes a pipeline by the keys in it.
      const pipeline = client.pipeline(commands.map((command) => ["call", ...command]));
      return ((await pipeline.exec()) ?? []).map(([error, reply]) => error ?? reply);
    },
  };
}

function ofNodeRedis(client: NodeRedisClient, drop: () => void): Commands {
  const sender = client.sendCommand as (...args: unknown[]) => Promise<unknown>;
  const isCluster = "slots" in client;
  const send = (tag: string, command: readonly string[]): Promise<unknown> =>
    isCluster ? sender.call(client, tag, false, command) : sender.call(client, command);
  const opened = async (): Promise<void> => {
    if (!client.isOpen) await client.connect();
  };
  return {
    drop,
    call: async ({ script, tag, args }) => {
      if (!client.isOpen) await opened();
      const options = { keys: [tag], arguments: [...args] };
      return retriedByText((isKnown) =>
        isKnown ? client.evalSha(script.sha1, options) : client.eval(script.text, options),
      );
    },
    together: async (tag, commands) => {
      await opened();
      const replies = commands.map((command) => send(tag, command));
      const settled = await Promise.allSettled(replies);
      return settled.map((one) => (one.status === "fulfilled" ? one.value : one.reason));
    },
  };
}

/** Sends a script's text if the server does not know its hash, in which case nothing was executed. */
async function retriedByText(send: (isKnown: boolean) => Promise<unknown>): Promise<unknown> {
  try {
    return await send(true);
  } catch (error) {
    if (!isUnknownScript(error)) throw error;
    return send(false);
  }
}

const heard = new WeakSet<object>();

/** Without a listener, a lost connection ends the process or is printed; the next command fails anyway. */
function listenTo(client: object): void {
  const on: unknown = Reflect.get(client, "on");
  if (heard.has(client) || typeof on !== "function") return;
  heard.add(client);
  on.call(client, "error", () => {});
}
