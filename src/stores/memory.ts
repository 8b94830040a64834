import { v7 } from "uuid";
import { checkAt, checkSave } from "../checkpoint/arguments.js";
import { checkKeep, DEFAULT_KEEP, filterRuns, prunable } from "../checkpoint/retention.js";
import {
  type Checkpoint,
  type CheckpointAt,
  type CheckpointStore,
  type Claim,
  entryOf,
  type HistoryEntry,
  isAt,
  notFound,
  type Retention,
  type RunFilter,
  type RunSummary,
  type SaveOptions,
  summarize,
} from "../checkpoint/store.js";
import { CheckpointConflictError } from "../errors.js";
import { checkOptions } from "../options.js";
import type { Saved } from "../state/record.js";
import { checkRunId } from "../state/run-id.js";
import { State } from "../state/state.js";

/** Options of {@link MemoryStore}. */
export interface MemoryStoreOptions {
  /** How many checkpoints of each run to keep, the newest; at least 2, 5 by default, `Infinity` for all. */
  readonly keep?: number;
}

interface KeptState {
  readonly state: Checkpoint;
  readonly parent: Saved;
}

/** A run's newest checkpoints are the last `keep` of `kept`; older ones are cut off now and then. */
interface KeptRun {
  sequence: number;
  keep: number;
  kept: KeptState[];
}

/** The record of one save. Its id is put together when it is asked for: that costs more than the save. */
class MemoryRecord implements Saved {
  readonly sequence: number;
  readonly #store: string;
  readonly #save: number;

  constructor(sequence: number, store: string, save: number) {
    this.sequence = sequence;
    this.#store = store;
    this.#save = save;
  }

  get checkpointId(): string {
    return `${this.#store}.${this.#save}`;
  }
}

/**
 * Keeps checkpoints in memory, for tests and for runs that need not outlive their process. A State
 * can't change, so keeping one is keeping a reference, whatever its size.
 *
 * @example
 * ```ts
 * import { MemoryStore, State } from "waymark";
 *
 * const store = new MemoryStore({ keep: 10 });
 * const saved = await State.create({ topic: "cairns" }).checkpoint(store);
 * const loaded = await store.load(saved.runId);
 * console.log(loaded.sequence); // 1
 * ```
 */
export class MemoryStore implements CheckpointStore {
  readonly #runs = new Map<string, KeptRun>();
  readonly #claimed = new Map<string, Claim>();
  readonly #keep: number;
  /** Makes the ids of this store's checkpoints different from any other's. */
  readonly #id = v7();
  #saves = 0;

  /** @throws ConfigError when an option is not what it must be. */
  constructor(options: MemoryStoreOptions = {}) {
    checkOptions("MemoryStore", options, { keep: checkKeep });
    this.#keep = options.keep ?? DEFAULT_KEEP;
  }

  /** Keeps a State; see {@link CheckpointStore.save}. */
  async save<D extends object>(state: State<D>, options: SaveOptions = {}): Promise<State<D>> {
    checkSave(state, options);
    const { runId, sequence } = state;
    const run = this.#runs.get(runId) ?? { sequence: 0, keep: this.#keep, kept: [] };
    if (run.sequence !== sequence) {
      throw new CheckpointConflictError(runId, sequence, run.sequence);
    }
    const saved = state.savedAs(new MemoryRecord(sequence + 1, this.#id, ++this.#saves));
    const kept = State.isOpaque(saved) ? detached(saved) : saved;
    if (sequence === 0) this.#runs.set(runId, run);
    run.sequence = sequence + 1;
    run.keep = options.keep ?? this.#keep;
    run.kept.push({ state: kept, parent: State.recordOf(state) });
    if (run.kept.length > 2 * run.keep) run.kept = run.kept.slice(-run.keep);
    return saved;
  }

  /** The newest State of a run, or the one asked for; see {@link CheckpointStore.load}. */
  async load<D extends object>(runId: string, at: CheckpointAt = {}): Promise<State<D>> {
    checkRunId(runId);
    checkAt(at);
    const found = this.#kept(runId).findLast(({ state }) => isAt(at, state));
    if (found === undefined) throw notFound(runId, at);
    // What a run keeps is what its caller says it is: nobody else can know.
    return detached(found.state as unknown as State<D>);
  }

  /** Removes a run and its history; an absent run is fine. */
  async delete(runId: string): Promise<void> {
    this.#runs.delete(checkRunId(runId));
  }

  /** The ids of all runs. */
  async list(): Promise<string[]> {
    return [...this.#runs.keys()];
  }

  /** The checkpoints of a run, newest first. */
  async history(runId: string): Promise<HistoryEntry[]> {
    const kept = this.#kept(checkRunId(runId));
    return kept.map(({ state, parent }) => entryOf(state, parent.checkpointId)).reverse();
  }

  /** The runs that fit a filter, most recent first. */
  async runs(filter?: RunFilter): Promise<RunSummary[]> {
    return filterRuns(this.#summaries(), filter);
  }

  /** Removes old runs; see {@link Retention}. */
  async prune(retention: Retention): Promise<string[]> {
    const runs = this.#summaries().filter(({ runId }) => !this.#claimed.has(runId));
    const runIds = prunable(runs, retention).map((run) => run.runId);
    if (retention.dryRun !== true) for (const runId of runIds) this.#runs.delete(runId);
    return runIds;
  }

  /** Takes a run for this process; see {@link CheckpointStore.claim}. */
  async claim(runId: string): Promise<Claim | undefined> {
    if (this.#claimed.has(checkRunId(runId))) return undefined;
    const claim: Claim = {
      release: async () => {
        if (this.#claimed.get(runId) === claim) this.#claimed.delete(runId);
      },
    };
    this.#claimed.set(runId, claim);
    return claim;
  }

  #kept(runId: string): readonly KeptState[] {
    const run = this.#runs.get(runId);
    return run === undefined ? [] : run.kept.slice(-run.keep);
  }

  #summaries(): RunSummary[] {
    return [...this.#runs.values()].flatMap(({ kept }) => {
      const newest = kept.at(-1);
      return newest === undefined ? [] : [summarize(newest.state)];
    });
  }
}

/**
 * A State that shares nothing anybody could write to, nor tells events to anybody. A frozen one is
 * shared; one with a buffer in it, say, is copied as a file would be, which also refuses what no
 * checkpoint can hold.
 */
function detached<D extends object>(state: State<D>): State<D> {
  return State.isOpaque(state) ? State.fromJSON<D>(state.toJSON()) : State.tellTo(state, undefined);
}
