/**
 * A copy of every checkpoint in another store.
 *
 * @packageDocumentation
 */
import { historyOf, verifyOf } from "../checkpoint/any-store.js";
import {
  type CheckpointStore,
  type ExportedCheckpoint,
  isCheckpointStore,
  type Overrides,
  wrap,
} from "../checkpoint/store.js";
import { mapLimit } from "../concurrency.js";
import { CheckpointCorruptionError, ConfigError, messageOf, show } from "../errors.js";
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
 * A store whose checkpoints are copied to others; see {@link mirror}. It has the methods of its primary, `P`, and these.
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
export type MirrorStore<P extends CheckpointStore = CheckpointStore> = Pick<
  P,
  Extract<keyof P, keyof CheckpointStore>
> &
  MirrorMethods;

/** What a mirror can do besides storing; see {@link MirrorStore}. */
export interface MirrorMethods {
  /** How far each replica is behind. */
  lag(): readonly MirrorLag[];
  /**
   * Compares all runs of the primary with the copies and copies what is missing, for example after a copy was
   * unreachable while none of your processes ran. A run that the primary does not have is left alone.
   */
  catchUp(): Promise<readonly MirrorLag[]>;
  /**
   * Checks that a replica is intact, and up to which sequence it has each run, so that it can replace a lost
   * primary. What is missing is read from the primary if it can be reached; otherwise only the saves of this
   * process that were not copied yet are counted. Nothing is changed: pass `store` to your graphs from then
   * on.
   *
   * @throws CheckpointCorruptionError if the replica is damaged.
   * @throws ConfigError if there is no such replica.
   */
  promote(replica?: number): Promise<Promotion>;
  /** Copies what is pending, as far as the copies can be reached, then closes all stores. */
  close(): Promise<void>;
}

/** Copies to the replicas what the primary has. */
function copyingTo(replicas: readonly Replica[], isSync: boolean): Overrides {
  const each = async (copy: (replica: Replica) => Promise<void>): Promise<void> => {
    const copies = replicas.map(copy);
    if (isSync) await Promise.all(copies);
  };
  return {
    save: (save) => async (state, options) => {
      const parentId = state.checkpointId;
      const saved = await save(state, options);
      const checkpoint = { state: saved as unknown as State<object>, parentId };
      const { keep, keepPerPhase } = options ?? {};
      await each((replica) => replica.saved(checkpoint, { keep, keepPerPhase }));
      return saved;
    },
    delete: (remove) => async (runId) => {
      await remove(runId);
      await each((replica) => replica.deleted(runId));
    },
    prune: (prune) => async (retention) => {
      const removed = await prune(retention);
      if (retention.dryRun === true) return removed;
      for (const runId of removed) {
        await each((replica) => replica.deleted(runId));
      }
      return removed;
    },
    import: (take) => async (checkpoints) => {
      let runId: string | undefined;
      async function* seen(): AsyncGenerator<ExportedCheckpoint> {
        for await (const checkpoint of checkpoints) {
          runId = checkpoint.state.runId;
          yield checkpoint;
        }
      }
      await take(seen());
      const imported = runId;
      if (imported !== undefined) await each((replica) => replica.compare(imported));
    },
    saveTopology: (saveTopology) => async (topology) => {
      await saveTopology(topology);
      const copies = replicas.map(({ store }) => store.saveTopology?.(topology));
      // A failure does no harm: the next process saves it again.
      const all = Promise.allSettled(copies);
      if (isSync) await all;
    },
  };
}

/** What a mirror can do besides storing. */
function methodsOf(primary: CheckpointStore, replicas: readonly Replica[]): MirrorMethods {
  const lag = (): readonly MirrorLag[] => replicas.map((replica, index) => replica.lag(index));
  return {
    lag,
    async catchUp(): Promise<readonly MirrorLag[]> {
      const runIds = await primary.list();
      await mapLimit(runIds, AT_ONCE, (runId) =>
        Promise.all(replicas.map((replica) => replica.compare(runId))),
      );
      await Promise.all(replicas.map((replica) => replica.settle()));
      return lag();
    },

    async promote(replica = 0): Promise<Promotion> {
      const chosen = replicas[replica];
      if (chosen === undefined) {
        const count = replicas.length;
        throw new ConfigError(
          "replica",
          `must be an integer from 0 to ${count - 1}; got ${replica}`,
        );
      }
      await chosen.settle();
      const { store } = chosen;
      for await (const { runId, sequence, problem, expected, actual } of verifyOf(store)) {
        if (problem === "leftover" || problem === "quarantined") continue;
        const what = `replica ${replica} can't be promoted: checkpoint ${sequence} of run ${show(runId)} is ${problem}`;
        throw new CheckpointCorruptionError(what, { expected, actual });
      }
      const known = (await headsOf(primary)) ?? chosen.known;
      const runIds = new Set([...(await store.list()), ...known.keys()]);
      const runs = await mapLimit([...runIds], AT_ONCE, async (runId) => {
        const sequence = (await historyOf(store, runId))[0]?.sequence ?? 0;
        return { runId, sequence, missing: Math.max((known.get(runId) ?? 0) - sequence, 0) };
      });
      return { store, runs };
    },

    async close(): Promise<void> {
      await Promise.all(replicas.map((replica) => replica.settle()));
      for (const replica of replicas) replica.stop();
      const stores = [primary, ...replicas.map(({ store }) => store)];
      await Promise.all(stores.map((store) => store.close?.()));
    },
  };
}

/** The newest sequence of each run in a primary; `undefined` if it can't be reached. */
async function headsOf(primary: CheckpointStore): Promise<ReadonlyMap<string, number> | undefined> {
  try {
    const heads = await mapLimit(await primary.list(), AT_ONCE, async (runId) => {
      const [newest] = await historyOf(primary, runId);
      return [runId, newest?.sequence ?? 0] as const;
    });
    return new Map(heads);
  } catch {
    return undefined;
  }
}

/**
 * A store that keeps everything in `primary` and copies it to the replicas, each checkpoint with its id and
 * sequence: SQLite here and Postgres elsewhere, for example. Loads, lists and claims use the primary only, and what the
 * primary can't do, the mirror can't do.
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
export function mirror<P extends CheckpointStore>(
  primary: P,
  replicas: readonly CheckpointStore[],
  options: MirrorOptions = {},
): MirrorStore<P> {
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
  const { mode = "async", onError = warn } = options;
  const copies = replicas.map(
    (store, replica) =>
      new Replica(store, primary, (error, runId) => {
        try {
          onError(error, { runId, replica });
        } catch (worse) {
          warn(worse, { runId, replica });
        }
      }),
  );
  return wrap(primary, copyingTo(copies, mode === "sync"), methodsOf(primary, copies));
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
