/**
 * A copy of every checkpoint in another store.
 *
 * @packageDocumentation
 */
import { exportOf, historyOf, listRuns, verifyOf } from "../checkpoint/any-store.js";
import { methodOf } from "../checkpoint/deferred.js";
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
} from "../checkpoint/store.js";
import { mapLimit } from "../concurrency.js";
import { CheckpointCorruptionError, ConfigError, messageOf, show } from "../errors.js";
import type { GraphTopology } from "../graph/description.js";
import { callable, checkOptions, oneOf } from "../options.js";
import type { State } from "../state/state.js";
import { AT_ONCE, type MirrorLag, Replica } from "./mirror/replica.js";

export type { MirrorLag };

/** Options of {@link mirror}. */
export interface MirrorOptions {
  /**
   * `"async"`, the default: a save resolves once the primary has it, and is copied in the background.
   * `"sync"`: it also waits for the copies that can be reached.
   */
  readonly mode?: "async" | "sync";
  /** Handles a copy that failed; a process warning by default. The copy catches up by itself. */
  readonly onError?: (error: unknown, failed: FailedCopy) => void;
}

/** What could not be copied. */
export interface FailedCopy {
  /** The run. */
  readonly runId: string;
  /** The index of the replica, from 0. */
  readonly replica: number;
}

/** A replica that was verified, to be used in place of the primary. */
export interface Promotion {
  /** The replica. */
  readonly store: CheckpointStore;
  /** Its runs, each with the sequence of its newest checkpoint, and how many later ones are known to be missing. */
  readonly runs: readonly {
    /** The run. */
    readonly runId: string;
    /** The sequence of its newest checkpoint in the replica; 0 if it has none. */
    readonly sequence: number;
    /** How many later acknowledged saves the replica lacks. */
    readonly missing: number;
  }[];
}

/**
 * A store whose checkpoints are copied to others; see {@link mirror}.
 *
 * @example
 * ```ts
 * import Database from "libsql";
 * import { State } from "waymark";
 * import { type MirrorStore, mirror } from "waymark/stores/mirror";
 * import { SqliteStore } from "waymark/stores/sqlite";
 *
 * const open = () => new SqliteStore({ client: new Database(":memory:") });
 * const store: MirrorStore = mirror(open(), [open()], {
 *   onError: (error, { runId, replica }) => console.error(`run ${runId} is not in replica ${replica}`, error),
 * });
 * await State.create({ n: 1 }).checkpoint(store);
 * await store.catchUp();
 * console.log(store.lag()[0]?.saves); // 0
 * await store.close();
 * ```
 */
export class MirrorStore implements CheckpointStore {
  readonly #primary: CheckpointStore;
  readonly #replicas: readonly Replica[];
  readonly #isSync: boolean;

  /** @internal */
  constructor(
    primary: CheckpointStore,
    replicas: readonly CheckpointStore[],
    { mode = "async", onError = warn }: MirrorOptions,
  ) {
    this.#primary = primary;
    this.#isSync = mode === "sync";
    this.#replicas = replicas.map(
      (store, replica) =>
        new Replica(store, primary, (error, runId) => {
          try {
            onError(error, { runId, replica });
          } catch (worse) {
            warn(worse, { runId, replica });
          }
        }),
    );
  }

  /** Saves a State in the primary, then in the copies. */
  async save<D extends object>(state: State<D>, options: SaveOptions = {}): Promise<State<D>> {
    const parentId = state.checkpointId;
    const saved = await this.#primary.save(state, options);
    const checkpoint = { state: saved as unknown as State<object>, parentId };
    const { keep, keepPerPhase } = options;
    await this.#each((replica) => replica.saved(checkpoint, { keep, keepPerPhase }));
    return saved;
  }

  /** The newest State of a run in the primary, or the one asked for. */
  load<D extends object>(
    runId: string,
    at?: CheckpointAt,
    context?: StoreContext,
  ): Promise<State<D>> {
    return this.#primary.load(runId, at, context);
  }

  /** Removes a run from the primary, then from the copies. */
  async delete(runId: string): Promise<void> {
    await this.#primary.delete(runId);
    await this.#each((replica) => replica.deleted(runId));
  }

  /** The ids of all runs of the primary. */
  list(): Promise<string[]> {
    return this.#primary.list();
  }

  /**
   * The run that a checkpoint belongs to.
   *
   * @throws ConfigError if the primary has no `find`.
   */
  async find(checkpointId: string): Promise<string | undefined> {
    return methodOf(this.#primary, "find", "primary")(checkpointId);
  }

  /** The checkpoints of a run, newest first. */
  async history(runId: string): Promise<HistoryEntry[]> {
    return historyOf(this.#primary, runId);
  }

  /** The runs that match a filter, most recently saved first. */
  async runs(filter?: RunFilter): Promise<RunSummary[]> {
    return listRuns(this.#primary, filter);
  }

  /** The ids of the runs that `runs` leaves out because nothing of them can be read. */
  async unreadable(): Promise<string[]> {
    return this.#primary.unreadable?.() ?? [];
  }

  /**
   * Removes old runs from the primary, and the same runs from the copies.
   *
   * @throws ConfigError if the primary has no `prune`.
   */
  async prune(retention: Retention): Promise<string[]> {
    const removed = await methodOf(this.#primary, "prune", "primary")(retention);
    if (retention.dryRun === true) return removed;
    for (const runId of removed) {
      await this.#each((replica) => replica.deleted(runId));
    }
    return removed;
  }

  /** Claims a run in the primary. */
  async claim(runId: string, options?: ClaimOptions): Promise<Claim | undefined> {
    // Without claims, nobody is kept from working on the run.
    if (this.#primary.claim === undefined) return { release: async () => {} };
    return this.#primary.claim(runId, options);
  }

  /** Who has claimed a run. */
  async holder(runId: string): Promise<ClaimHolder | undefined> {
    return this.#primary.holder?.(runId);
  }

  /** Reads every checkpoint of the primary and yields what is wrong. */
  verify(runId?: string): AsyncGenerator<Finding> {
    return verifyOf(this.#primary, runId);
  }

  /** The checkpoints of a run, oldest first. */
  export(runId: string): AsyncGenerator<ExportedCheckpoint> {
    return exportOf(this.#primary, runId);
  }

  /**
   * Takes over a run that the primary does not have, and copies it.
   *
   * @throws ConfigError if the primary has no `import`.
   */
  async import(
    checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  ): Promise<void> {
    let runId: string | undefined;
    async function* seen(): AsyncGenerator<ExportedCheckpoint> {
      for await (const checkpoint of checkpoints) {
        runId = checkpoint.state.runId;
        yield checkpoint;
      }
    }
    await methodOf(this.#primary, "import", "primary")(seen());
    const imported = runId;
    if (imported !== undefined) await this.#each((replica) => replica.compare(imported));
  }

  /** Saves the topology of a graph, in the copies too. */
  async saveTopology(topology: GraphTopology): Promise<void> {
    await this.#primary.saveTopology?.(topology);
    const copies = this.#replicas.map(({ store }) => store.saveTopology?.(topology));
    // A failure does no harm: the next process saves it again.
    const all = Promise.allSettled(copies);
    if (this.#isSync) await all;
  }

  /** The topology of the graph with this fingerprint. */
  async topology(fingerprint: string): Promise<GraphTopology | undefined> {
    return this.#primary.topology?.(fingerprint);
  }

  /** How far each replica is behind. */
  lag(): readonly MirrorLag[] {
    return this.#replicas.map((replica, index) => replica.lag(index));
  }

  /**
   * Compares all runs of the primary with the copies and copies what is missing, for example after a copy was
   * unreachable while none of your processes ran. A run that the primary does not have is left alone.
   */
  async catchUp(): Promise<readonly MirrorLag[]> {
    const runIds = await this.#primary.list();
    await mapLimit(runIds, AT_ONCE, (runId) =>
      Promise.all(this.#replicas.map((replica) => replica.compare(runId))),
    );
    await Promise.all(this.#replicas.map((replica) => replica.settle()));
    return this.lag();
  }

  /**
   * Checks that a replica is intact, and up to which sequence it has each run, so that it can replace a lost
   * primary. What is missing is read from the primary if it can be reached; otherwise only the saves of this
   * process that were not copied yet are counted. Nothing is changed: pass `store` to your graphs from then
   * on.
   *
   * @throws CheckpointCorruptionError if the replica is damaged.
   * @throws ConfigError if there is no such replica.
   */
  async promote(replica = 0): Promise<Promotion> {
    const chosen = this.#replicas[replica];
    if (chosen === undefined) {
      const count = this.#replicas.length;
      throw new ConfigError("replica", `must be an integer from 0 to ${count - 1}; got ${replica}`);
    }
    await chosen.settle();
    const { store } = chosen;
    for await (const { runId, sequence, problem, expected, actual } of verifyOf(store)) {
      if (problem === "leftover" || problem === "quarantined") continue;
      const what = `replica ${replica} can't be promoted: checkpoint ${sequence} of run ${show(runId)} is ${problem}`;
      throw new CheckpointCorruptionError(what, { expected, actual });
    }
    const known = (await this.#heads()) ?? chosen.known;
    const runIds = new Set([...(await store.list()), ...known.keys()]);
    const runs = await mapLimit([...runIds], AT_ONCE, async (runId) => {
      const sequence = (await historyOf(store, runId))[0]?.sequence ?? 0;
      return { runId, sequence, missing: Math.max((known.get(runId) ?? 0) - sequence, 0) };
    });
    return { store, runs };
  }

  /** Copies what is pending, as far as the copies can be reached, then closes all stores. */
  async close(): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => replica.settle()));
    for (const replica of this.#replicas) replica.stop();
    const stores = [this.#primary, ...this.#replicas.map(({ store }) => store)];
    await Promise.all(stores.map((store) => store.close?.()));
  }

  /** The newest sequence of each run in the primary; `undefined` if it can't be reached. */
  async #heads(): Promise<ReadonlyMap<string, number> | undefined> {
    try {
      const heads = await mapLimit(await this.#primary.list(), AT_ONCE, async (runId) => {
        const [newest] = await historyOf(this.#primary, runId);
        return [runId, newest?.sequence ?? 0] as const;
      });
      return new Map(heads);
    } catch {
      return undefined;
    }
  }

  async #each(copy: (replica: Replica) => Promise<void>): Promise<void> {
    const copies = this.#replicas.map(copy);
    if (this.#isSync) await Promise.all(copies);
  }
}

/**
 * A store that keeps everything in `primary` and copies it to the replicas, each checkpoint with its id and
 * sequence: SQLite here and Postgres elsewhere, for example. Loads, lists and claims use the primary only.
 *
 * A replica that can't be reached never fails a save: `onError` is called, and the replica catches up by
 * itself while the process runs. After a restart, call {@link MirrorStore.catchUp}.
 *
 * @throws ConfigError if a store or an option is invalid.
 *
 * @example
 * ```ts
 * import Database from "libsql";
 * import { State } from "waymark";
 * import { mirror } from "waymark/stores/mirror";
 * import { SqliteStore } from "waymark/stores/sqlite";
 *
 * const [here, elsewhere] = [new Database(":memory:"), new Database(":memory:")];
 * const copy = new SqliteStore({ client: elsewhere });
 * const store = mirror(new SqliteStore({ client: here }), [copy], { mode: "sync" });
 * const { runId, checkpointId } = await State.create({ topic: "cairns" }).checkpoint(store);
 * console.log((await copy.load(runId)).checkpointId === checkpointId); // true
 * const { runs } = await store.promote();
 * console.log(runs[0]?.sequence, runs[0]?.missing, store.lag()[0]?.saves); // 1 0 0
 * await store.close();
 * ```
 */
export function mirror(
  primary: CheckpointStore,
  replicas: readonly CheckpointStore[],
  options: MirrorOptions = {},
): MirrorStore {
  if (!isCheckpointStore(primary)) {
    throw new ConfigError("primary", `must be a CheckpointStore; got ${show(primary)}`);
  }
  if (!Array.isArray(replicas) || replicas.length === 0) {
    throw new ConfigError(
      "replicas",
      `must be an array of one store or more; got ${show(replicas)}`,
    );
  }
  for (const [index, replica] of replicas.entries()) {
    const isFit = isCheckpointStore(replica) && replica.import !== undefined && replica !== primary;
    if (isFit) continue;
    const problem = `must be another CheckpointStore, with import(); got ${show(replica)}`;
    throw new ConfigError(`replicas[${index}]`, problem);
  }
  checkOptions("options", options, { mode: oneOf("async", "sync"), onError: callable });
  return new MirrorStore(primary, replicas, options);
}

const warned = new Set<number>();

function warn(error: unknown, { runId, replica }: FailedCopy): void {
  if (warned.has(replica)) return;
  warned.add(replica);
  const what = `replica ${replica} of a mirror is behind, since run ${show(runId)}`;
  process.emitWarning(`${what}: ${messageOf(error)}`, {
    type: "WaymarkWarning",
    code: "WAYMARK_MIRROR_BEHIND",
  });
}
