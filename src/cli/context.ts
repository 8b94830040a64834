import { userInfo } from "node:os";
import { dirname, resolve } from "node:path";
import type { Audit } from "../audit.js";
import { isCheckpointStore } from "../checkpoint/store.js";
import type { LogPlace } from "../observers/run-files.js";
import type { Redaction } from "../report/redaction.js";
import { typed } from "../report/shell.js";
import { hidePassword, showAddress, unknownStore } from "../stores/address.js";
import { ask } from "./ask.js";
import type { LoadedConfig, StoreConfig } from "./config/config.js";
import type { AnyGraph } from "./config/graphs.js";
import { usage } from "./exit.js";
import type { Io } from "./io.js";
import { Printer } from "./output/printer.js";
import type { Mode, OpenStore } from "./store/open.js";
import type { Values } from "./values.js";

const DEFAULT_STORE = "file:.waymark";

/** What a command works with. Nothing is read or loaded before it is asked for. */
export class Context {
  readonly io: Io;
  readonly print: Printer;
  /** Who calls the command, and what for. */
  readonly audit: Audit;
  readonly #values: Values;
  /** By mode and address: what a command has open it uses again. */
  readonly #opened = new Map<string, OpenStore>();
  #config: Promise<LoadedConfig> | undefined;

  /** @param verb - the name of the command. */
  constructor(io: Io, values: Values, verb: string) {
    this.io = io;
    this.audit = { actor: values.text("actor") ?? loginName(), purpose: `waymark ${verb}` };
    this.#values = values;
    this.print = new Printer(io, { json: values.flag("json"), color: !values.denied("color") });
  }

  /** The config; an empty one when there is none. */
  config(): Promise<LoadedConfig> {
    this.#config ??= import("./config/load.js").then(({ loadConfig }) => {
      const values = this.#values;
      return loadConfig(this.io.cwd, values.denied("config") ? false : values.text("config"));
    });
    return this.#config;
  }

  /** Executes no config from here on: only what is plain data in one counts, unless one was named. */
  withoutCode(): void {
    if (this.#values.text("config") !== undefined) return;
    this.#config = import("./config/load.js").then(({ loadData }) => loadData(this.io.cwd));
  }

  /**
   * The store that was asked for, or the default one. It is closed when the command ends.
   *
   * @param isAudited - whether it reports to the config's observer who uses it.
   */
  async store(mode: Mode = "read", isAudited = true): Promise<OpenStore> {
    const { folder, store } = await this.config();
    const given = this.#values.text("store") ?? (this.io.env.WAYMARK_STORE || undefined);
    const opened =
      given === undefined
        ? await this.#open(store ?? DEFAULT_STORE, folder, mode)
        : await this.#open(given, this.io.cwd, mode);
    return isAudited ? this.#audited(opened) : opened;
  }

  /** The store of a text: an address, or a name out of the config. */
  async storeOf(text: string, mode: Mode): Promise<OpenStore> {
    return this.#audited(await this.#open(text, this.io.cwd, mode));
  }

  /** Whether a store was named; if not, a graph uses its own. */
  async isStoreGiven(): Promise<boolean> {
    const { store } = await this.config();
    return (
      this.#values.text("store") !== undefined || !!this.io.env.WAYMARK_STORE || store !== undefined
    );
  }

  async #open(
    given: StoreConfig,
    folder: string,
    mode: Mode,
    name = "the config's store",
  ): Promise<OpenStore> {
    const config = await this.config();
    const { stores = {} } = config;
    if (typeof given === "string" && Object.hasOwn(stores, given)) {
      const named = stores[given];
      if (named !== undefined && named !== given) {
        return this.#open(named, config.folder, mode, `the config's store "${given}"`);
      }
    }
    if (isCheckpointStore(given)) return { store: given, address: undefined, name };
    const { store: text, codec = config.codec } =
      typeof given === "string" ? { store: given } : given;
    const { addressIn, openStore } = await import("./store/open.js");
    const address = addressIn(folder, text);
    if (address === undefined) throw unknownStore(text, Object.keys(stores));
    const key = `${mode} ${showAddress(address)}`;
    const known = this.#opened.get(key);
    if (known !== undefined) return known;
    // PGlite lets a folder be open once only; a store that was closed opens again when it is used.
    const other = this.#opened.get(`${mode === "read" ? "write" : "read"} ${showAddress(address)}`);
    await other?.store.close?.();
    const opened = await openStore(address, mode, codec);
    this.#opened.set(key, opened);
    return opened;
  }

  /** The store, reporting to the config's observer, if there is one, who does what. */
  async #audited(opened: OpenStore): Promise<OpenStore> {
    const { observer } = await this.config();
    if (observer === undefined) return opened;
    const { audited } = await import("../checkpoint/audited.js");
    return { ...opened, store: audited(opened.store, observer, this.audit) };
  }

  /** A graph by its name in the config, or out of a module. */
  async graph(given: string): Promise<AnyGraph> {
    const { loadGraph } = await import("./config/graphs.js");
    return loadGraph(await this.config(), given, this.io.cwd);
  }

  /** Where the events of runs are logged; `undefined` where that is not known. */
  async log(
    { address }: OpenStore,
    given = this.#values.text("log"),
  ): Promise<LogPlace | undefined> {
    const { log, folder } = await this.config();
    const path = given !== undefined ? resolve(this.io.cwd, given) : log && resolve(folder, log);
    if (path !== undefined) return path.endsWith(".jsonl") ? { path } : { root: path };
    if (address?.scheme === "file") return { root: address.location };
    return address?.scheme === "sqlite" ? { root: dirname(address.location) } : undefined;
  }

  /** Removes what the config says is never printed. */
  async redaction(): Promise<Redaction> {
    const [{ redact }, { Redaction }] = await Promise.all([
      this.config(),
      import("../report/redaction.js"),
    ]);
    return new Redaction(redact);
  }

  /** A command as it can be typed next: with the store and the config that were named in this one. */
  command(verb: string, runId?: string, ...options: readonly string[]): string {
    const named = ["store", "config"].flatMap((name) => {
      const value = this.#values.text(name);
      return value === undefined ? [] : [`--${name}`, hidePassword(value)];
    });
    return typed(verb, runId, [...options, ...named]);
  }

  /**
   * Asks before something that can't be undone.
   *
   * @param details - what to know before one answers.
   * @throws CommandError when the answer is no, or there is nobody to ask.
   */
  async confirm(question: string, details = ""): Promise<void> {
    if (this.#values.flag("yes")) return;
    if (this.io.stdin.isTTY !== true || this.io.stderr.isTTY !== true) {
      throw usage(`${question} There is no terminal to ask in`, "--yes answers yes");
    }
    if (details !== "") this.print.note(details);
    if (!(await ask(this.io, question))) throw usage("nothing was done");
  }

  /** Lets go of all stores. */
  async close(): Promise<void> {
    for (const { store } of this.#opened.values()) await store.close?.();
    this.#opened.clear();
  }
}

function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    // A user without an entry, as in some containers.
    return "unknown";
  }
}
