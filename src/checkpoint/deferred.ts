import { ConfigError, show } from "../errors.js";
import type { GraphTopology } from "../graph/description.js";
import type { State } from "../state/state.js";
import {
  type CheckpointAt,
  type CheckpointStore,
  type Claim,
  type ClaimHolder,
  type ClaimOptions,
  type ExportedCheckpoint,
  type Finding,
  type HistoryEntry,
  isCheckpointStore,
  type Retention,
  type RunFilter,
  type RunSummary,
  type SaveOptions,
  type StoreContext,
} from "./store.js";

/** The optional methods for which there is no substitute. */
type Optional = "history" | "runs" | "prune" | "find" | "verify" | "export" | "import";

/**
 * An optional method of a store.
 *
 * @param title - names the store in the error.
 * @throws ConfigError if the store does not have it.
 */
export function methodOf<K extends Optional>(
  store: CheckpointStore,
  name: K,
  title: string,
): Required<CheckpointStore>[K] {
  const method = store[name];
  if (method !== undefined) return method.bind(store) as Required<CheckpointStore>[K];
  throw new ConfigError(title, `has no ${name}`);
}

/** Throws if a factory made no store. */
export function checkMade(name: string, store: unknown): CheckpointStore {
  if (isCheckpointStore(store)) return store;
  throw new ConfigError(
    `store ${show(name)}`,
    `must come from a factory that makes a CheckpointStore; got ${show(store)}`,
  );
}

/** Stands in for a store whose module is loaded on first use. */
export class DeferredStore implements CheckpointStore {
  readonly #name: string;
  readonly #create: () => CheckpointStore | Promise<CheckpointStore>;
  #store: Promise<CheckpointStore> | undefined;

  /** @param first - the result of `create`, if it has been called already. */
  constructor(
    name: string,
    create: () => CheckpointStore | Promise<CheckpointStore>,
    first?: Promise<CheckpointStore>,
  ) {
    this.#name = name;
    this.#create = create;
    // A failure surfaces only when the store is used, which tries again.
    if (first !== undefined) this.#load(() => first).catch(() => {});
  }

  /** Resolves to the store itself; the next call retries a load that failed. */
  ready(): Promise<CheckpointStore> {
    return this.#store ?? this.#load(this.#create);
  }

  #load(create: () => CheckpointStore | Promise<CheckpointStore>): Promise<CheckpointStore> {
    const make = async (): Promise<CheckpointStore> => checkMade(this.#name, await create());
    const store = make().catch((error: unknown) => {
      this.#store = undefined;
      throw error;
    });
    this.#store = store;
    return store;
  }

  async save<D extends object>(state: State<D>, options?: SaveOptions): Promise<State<D>> {
    return (await this.ready()).save(state, options);
  }

  async load<D extends object>(
    runId: string,
    at?: CheckpointAt,
    context?: StoreContext,
  ): Promise<State<D>> {
    return (await this.ready()).load(runId, at, context);
  }

  async delete(runId: string): Promise<void> {
    return (await this.ready()).delete(runId);
  }

  async list(): Promise<string[]> {
    return (await this.ready()).list();
  }

  async history(runId: string): Promise<HistoryEntry[]> {
    return (await this.#method("history"))(runId);
  }

  async runs(filter?: RunFilter): Promise<RunSummary[]> {
    return (await this.#method("runs"))(filter);
  }

  async prune(retention: Retention): Promise<string[]> {
    return (await this.#method("prune"))(retention);
  }

  async claim(runId: string, options?: ClaimOptions): Promise<Claim | undefined> {
    const store = await this.ready();
    // If the store has no claims, anyone may work on the run.
    return store.claim === undefined ? { release: async () => {} } : store.claim(runId, options);
  }

  async find(checkpointId: string): Promise<string | undefined> {
    return (await this.#method("find"))(checkpointId);
  }

  async holder(runId: string): Promise<ClaimHolder | undefined> {
    return (await this.ready()).holder?.(runId);
  }

  async *verify(runId?: string): AsyncGenerator<Finding> {
    yield* (await this.#method("verify"))(runId);
  }

  async saveTopology(topology: GraphTopology): Promise<void> {
    await (await this.ready()).saveTopology?.(topology);
  }

  async topology(fingerprint: string): Promise<GraphTopology | undefined> {
    return (await this.ready()).topology?.(fingerprint);
  }

  async *export(runId: string): AsyncGenerator<ExportedCheckpoint> {
    yield* (await this.#method("export"))(runId);
  }

  async import(
    checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  ): Promise<void> {
    await (await this.#method("import"))(checkpoints);
  }

  async close(): Promise<void> {
    if (this.#store !== undefined) await (await this.#store).close?.();
  }

  /** An optional method of the store. */
  async #method<K extends Optional>(name: K): Promise<Required<CheckpointStore>[K]> {
    return methodOf(await this.ready(), name, `store ${show(this.#name)}`);
  }
}
