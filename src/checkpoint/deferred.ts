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
    const store = this.#make(create).catch((error: unknown) => {
      this.#store = undefined;
      throw error;
    });
    this.#store = store;
    return store;
  }

  async #make(create: () => CheckpointStore | Promise<CheckpointStore>): Promise<CheckpointStore> {
    const store = await create();
    if (isCheckpointStore(store)) return store;
    throw new ConfigError(
      `store ${show(this.#name)}`,
      `must come from a factory that makes a CheckpointStore; got ${show(store)}`,
    );
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
    const store = await this.ready();
    return store.history?.(runId) ?? this.#lacks("history");
  }

  async runs(filter?: RunFilter): Promise<RunSummary[]> {
    const store = await this.ready();
    return store.runs?.(filter) ?? this.#lacks("runs");
  }

  async prune(retention: Retention): Promise<string[]> {
    const store = await this.ready();
    return store.prune?.(retention) ?? this.#lacks("prune");
  }

  async claim(runId: string, options?: ClaimOptions): Promise<Claim | undefined> {
    const store = await this.ready();
    // If the store has no claims, anyone may work on the run.
    return store.claim === undefined ? { release: async () => {} } : store.claim(runId, options);
  }

  async find(checkpointId: string): Promise<string | undefined> {
    const store = await this.ready();
    return store.find === undefined ? this.#lacks("find") : store.find(checkpointId);
  }

  async holder(runId: string): Promise<ClaimHolder | undefined> {
    return (await this.ready()).holder?.(runId);
  }

  async *verify(runId?: string): AsyncGenerator<Finding> {
    const store = await this.ready();
    yield* store.verify?.(runId) ?? this.#lacks("verify");
  }

  async saveTopology(topology: GraphTopology): Promise<void> {
    await (await this.ready()).saveTopology?.(topology);
  }

  async topology(fingerprint: string): Promise<GraphTopology | undefined> {
    return (await this.ready()).topology?.(fingerprint);
  }

  async *export(runId: string): AsyncGenerator<ExportedCheckpoint> {
    const store = await this.ready();
    yield* store.export?.(runId) ?? this.#lacks("export");
  }

  async import(
    checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  ): Promise<void> {
    const store = await this.ready();
    await (store.import?.(checkpoints) ?? this.#lacks("import"));
  }

  async close(): Promise<void> {
    if (this.#store !== undefined) await (await this.#store).close?.();
  }

  #lacks(method: string): never {
    throw new ConfigError(`store ${show(this.#name)}`, `has no ${method}`);
  }
}
