import { userInfo } from "node:os";
import { dirname, resolve } from "node:path";
import { isCheckpointStore, opened } from "../checkpoint/store.js";
import type { Audit } from "../event-map.js";
import type { LogPlace } from "../observers/run-files.js";
import type { Redaction } from "../report/redaction.js";
import { typed } from "../report/shell.js";
import type { AnyGraph } from "../run/state-graph.js";
import { hidePassword, showAddress, unknownStore } from "../stores/address.js";
import { ask } from "./ask.js";
import type { LoadedConfig, StoreConfig } from "./config/config.js";
import { usage } from "./exit.js";
import type { Io } from "./io.js";
import { Printer } from "./output/printer.js";
import type { Mode, OpenStore } from "./store/open.js";
import type { Values } from "./values.js";

const DEFAULT_STORE = "file:.waymark";

/** What a command works with: config, stores, graphs, output. Everything is loaded on first use. */
export class Context {
  readonly io: Io;
  readonly print: Printer;
  /** Who calls the command, and what for. */
  readonly audit: Audit;
  readonly #values: Values;
  /** Open stores by mode and address. */
  readonly #opened = new Map<string, OpenStore>();
  #config: Promise<LoadedConfig> | undefined;

  /** @param verb - the name of the command. */
  constructor(io: Io, values: Values, verb: string) {
    this.io = io;
    this.audit = { actor: values.text("actor") ?? loginName(), purpose: `waymark ${verb}` };
    this.#values = values;
    this.print = new Printer(io, { json: values.flag("json"), color: !values.denied("color") });
  }

  /** The config; an empty one if there is none. */
  config(): Promise<LoadedConfig> {
    this.#config ??= import("./config/load.js").then(({ loadConfig }) => {
      const values = this.#values;
      return loadConfig(this.io.cwd, values.denied("config") ? false : values.text("config"));
    });
    return this.#config;
  }

  /** From here on, executes no config that was not named: only plain data is read from the folder's. */
  withoutCode(): void {
    if (this.#values.text("config") !== undefined) return;
    this.#config = import("./config/load.js").then(({ loadData }) => loadData(this.io.cwd));
  }

  /**
   * The store that was named, or the default one. It is closed when the command ends.
   *
   * @param isAudited - whether to report its use to the config's observer.
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

  /** A store by its address or its name in the config. */
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
    if (isCheckpointStore(given)) {
      return { store: await opened(given), address: undefined, name };
    }
    const { store: text, codec = config.codec } =
      typeof given === "string" ? { store: given } : given;
    const { addressIn, openStore } = await import("./store/open.js");
    const address = addressIn(folder, text);
    if (address === undefined) throw unknownStore(text, Object.keys(stores));
    const key = `${mode} ${showAddress(address)}`;
    const known = this.#opened.get(key);
    if (known !== undefined) return known;
    // A PGlite folder can only be opened once; a closed store reopens on its next use.
    const other = this.#opened.get(`${mode === "read" ? "write" : "read"} ${showAddress(address)}`);
    await other?.store.close?.();
    const found = await openStore(address, mode, codec);
    this.#opened.set(key, found);
    return found;
  }

  /** The store, wrapped so that it reports its use to the config's observer, if there is one. */
  async #audited(opened: OpenStore): Promise<OpenStore> {
    const { observer } = await this.config();
    if (observer === undefined) return opened;
    const { audited } = await import("../checkpoint/any-store.js");
    return { ...opened, store: audited(opened.store, observer, this.audit) };
  }

  /** A graph by its name in the config or its module. */
  async graph(given: string): Promise<AnyGraph> {
    const { loadGraph } = await import("./config/graphs.js");
    return loadGraph(await this.config(), given, this.io.cwd);
  }

  /** Where the events of runs are logged; `undefined` if unknown. */
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

  /** Applies the config's `redact`. */
  async redaction(): Promise<Redaction> {
    const [{ redact }, { Redaction }] = await Promise.all([
      this.config(),
      import("../report/redaction.js"),
    ]);
    return new Redaction(redact);
  }

  /** A command to type next, with the same --store and --config as this one. */
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
   * @param details - printed before the question.
   * @throws CommandError if the answer is no, or there is no terminal to ask in.
   */
  async confirm(question: string, details = ""): Promise<void> {
    if (this.#values.flag("yes")) return;
    if (this.io.stdin.isTTY !== true || this.io.stderr.isTTY !== true) {
      throw usage(`${question} There is no terminal to ask in`, "--yes answers yes");
    }
    if (details !== "") this.print.note(details);
    if (!(await ask(this.io, question))) throw usage("nothing was done");
  }

  /** Closes all stores. */
  async close(): Promise<void> {
    for (const { store } of this.#opened.values()) await store.close?.();
    this.#opened.clear();
  }
}

function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    // Some containers run as a user without a passwd entry.
    return "unknown";
  }
}
