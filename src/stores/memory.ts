import {
  checkAt,
  checkFilter,
  checkImport,
  checkKeep,
  checkRetention,
  checkSave,
  DEFAULT_KEEP,
  filterRuns,
  type Keepable,
  type KeepRule,
  kept,
  prunable,
} from "../checkpoint/arguments.js";
import {
  type CheckpointAt,
  type CheckpointStore,
  type Claim,
  type ClaimHolder,
  type ExportedCheckpoint,
  entryOf,
  type HistoryEntry,
  isAt,
  type Retention,
  type RunFilter,
  type RunSummary,
  type SaveOptions,
  summarize,
} from "../checkpoint/store.js";
import { isoNow } from "../clock.js";
import { CheckpointConflictError, CheckpointNotFoundError } from "../errors.js";
import type { GraphTopology } from "../graph/description.js";
import { checkOptions, checkRunId, string } from "../options.js";
import { newId } from "../random.js";
import { isOpaque } from "../state/derive.js";
import { isProgressSave, type Saved } from "../state/fields.js";
import { recordOf, State, stateOf } from "../state/state.js";

/** Options of {@link MemoryStore}. */
export interface MemoryStoreOptions {
  /** How many completed steps of each run to keep, the newest; at least 2, 5 by default, `Infinity` for all. */
  readonly keep?: number;
}

/** A stored checkpoint. */
interface KeptState extends Keepable {
  readonly state: State<object>;
  /** The checkpoint it was made from. Its id is built on demand: see {@link MemoryRecord}. */
  readonly parent: Pick<Saved, "checkpointId">;
}

/** A run: its checkpoints, oldest first, and how many may accumulate before the surplus is removed. */
interface KeptRun {
  sequence: number;
  rule: KeepRule;
  states: KeptState[];
  most: number;
}

/** How many surplus checkpoints may accumulate, so that not every save has to remove some. */
const SLACK = 16;

/** The record of one save. Its id is built on demand, because that costs more than the save. */
class MemoryRecord implements Saved {
  readonly sequence: number;
  readonly savedAt: string;
  readonly #store: string;
  readonly #save: number;

  constructor(sequence: number, savedAt: string, store: string, save: number) {
    this.sequence = sequence;
    this.savedAt = savedAt;
    this.#store = store;
    this.#save = save;
  }

  get checkpointId(): string {
    return `${this.#store}.${this.#save}`;
  }
}

/**
 * Keeps checkpoints in memory, for tests and for runs that need not outlive their process. A State is
 * immutable, so keeping one means keeping a reference, whatever its size.
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
  readonly #claimed = new Map<string, { readonly claim: Claim; readonly since: string }>();
  readonly #graphs = new Map<string, GraphTopology>();
  readonly #keep: number;
  /** Makes the ids of this store's checkpoints different from any other's. */
  readonly #id = newId();
  #saves = 0;

  /** @throws ConfigError if an option is invalid. */
  constructor(options: MemoryStoreOptions = {}) {
    checkOptions("MemoryStore", options, { keep: checkKeep });
    this.#keep = options.keep ?? DEFAULT_KEEP;
  }

  /** Keeps a State; see {@link CheckpointStore.save}. */
  async save<D extends object>(state: State<D>, options: SaveOptions = {}): Promise<State<D>> {
    checkSave(state, options);
    const { runId, sequence } = state;
    const run = this.#runs.get(runId) ?? newRun();
    if (run.sequence !== sequence) {
      throw new CheckpointConflictError(runId, sequence, run.sequence);
    }
    const saved = state.savedAs(new MemoryRecord(sequence + 1, isoNow(), this.#id, ++this.#saves));
    const copy = isOpaque(saved) ? detached(saved) : saved;
    if (sequence === 0) this.#runs.set(runId, run);
    run.sequence = sequence + 1;
    run.rule = { keep: options.keep ?? this.#keep, keepPerPhase: options.keepPerPhase };
    // The data type of a run is what its caller declares; the store can't check it.
    run.states.push(keptState(copy as unknown as State<object>, recordOf(state).saved));
    if (run.states.length > run.most) trim(run);
    return saved;
  }

  /** The newest State of a run, or the one asked for; see {@link CheckpointStore.load}. */
  async load<D extends object>(runId: string, at: CheckpointAt = {}): Promise<State<D>> {
    checkRunId(runId);
    checkAt(at);
    const found = this.#kept(runId).find(({ state }) => isAt(at, state));
    if (found === undefined) throw new CheckpointNotFoundError(runId, at);
    return detached(found.state as unknown as State<D>);
  }

  /** Removes a run and its history. Does nothing if there is no such run. */
  async delete(runId: string): Promise<void> {
    this.#runs.delete(checkRunId(runId));
  }

  /** The ids of all runs. */
  async list(): Promise<string[]> {
    return [...this.#runs.keys()];
  }

  /** The run that a checkpoint belongs to. */
  async find(checkpointId: string): Promise<string | undefined> {
    string("checkpointId", checkpointId);
    return [...this.#runs.keys()].find((runId) =>
      this.#kept(runId).some(({ state }) => state.checkpointId === checkpointId),
    );
  }

  /** The checkpoints of a run, newest first. */
  async history(runId: string): Promise<HistoryEntry[]> {
    return this.#kept(checkRunId(runId)).map(({ state, parent, unfinished }) =>
      entryOf(state, parent.checkpointId, unfinished),
    );
  }

  /** The runs that match a filter, most recently saved first. */
  async runs(filter: RunFilter = {}): Promise<RunSummary[]> {
    checkFilter(filter);
    return filterRuns(this.#summaries(), filter);
  }

  /** Removes old runs; see {@link Retention}. */
  async prune(retention: Retention): Promise<string[]> {
    checkRetention(retention);
    const runs = this.#summaries();
    const removed: string[] = [];
    for await (const page of prunable(retention, async (filter) => filterRuns(runs, filter))) {
      for (const { runId } of page) if (!this.#claimed.has(runId)) removed.push(runId);
    }
    if (retention.dryRun !== true) for (const runId of removed) this.#runs.delete(runId);
    return removed;
  }

  /** All kept checkpoints of a run, oldest first. */
  async *export(runId: string): AsyncGenerator<ExportedCheckpoint> {
    for (const { state, parent } of this.#kept(checkRunId(runId)).toReversed()) {
      yield { state: detached(state), parentId: parent.checkpointId };
    }
  }

  /**
   * Imports the checkpoints that another store exported: all of them, or none.
   *
   * @throws CheckpointConflictError if the run exists already.
   */
  async import(
    checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  ): Promise<void> {
    const run = { ...newRun(), rule: { keep: Number.POSITIVE_INFINITY } };
    let runId: string | undefined;
    for await (const { state, parentId } of checkImport(checkpoints)) {
      runId ??= state.runId;
      if (state.runId !== runId || state.sequence <= run.sequence) {
        throw new CheckpointConflictError(state.runId, run.sequence, state.sequence);
      }
      run.sequence = state.sequence;
      run.states.push(keptState(detached(state), { checkpointId: parentId }));
    }
    if (runId === undefined) return;
    const { sequence } = this.#runs.get(runId) ?? newRun();
    if (sequence > 0) throw new CheckpointConflictError(runId, 0, sequence);
    this.#runs.set(runId, run);
  }

  /** Claims a run for one caller; see {@link CheckpointStore.claim}. */
  async claim(runId: string): Promise<Claim | undefined> {
    if (this.#claimed.has(checkRunId(runId))) return undefined;
    const claim: Claim = {
      release: async () => {
        if (this.#claimed.get(runId)?.claim === claim) this.#claimed.delete(runId);
      },
    };
    this.#claimed.set(runId, { claim, since: isoNow() });
    return claim;
  }

  /** Who has claimed a run: always this process. */
  async holder(runId: string): Promise<ClaimHolder | undefined> {
    const claimed = this.#claimed.get(checkRunId(runId));
    const pid: unknown = Reflect.get(Object(Reflect.get(globalThis, "process")), "pid");
    return claimed && { host: "this machine", pid: Number(pid ?? 0), since: claimed.since };
  }

  /** Saves the topology of a graph. */
  async saveTopology(topology: GraphTopology): Promise<void> {
    this.#graphs.set(topology.fingerprint, topology);
  }

  /** The topology of the graph with this fingerprint. */
  async topology(fingerprint: string): Promise<GraphTopology | undefined> {
    return this.#graphs.get(fingerprint);
  }

  /** The kept checkpoints of a run, newest first. */
  #kept(runId: string): readonly KeptState[] {
    const run = this.#runs.get(runId);
    return run === undefined ? [] : kept(run.states.toReversed(), run.rule);
  }

  #summaries(): RunSummary[] {
    return [...this.#runs.values()].flatMap(({ states }) =>
      states.slice(-1).map(({ state }) => summarize(state)),
    );
  }
}

function keptState(state: State<object>, parent: KeptState["parent"]): KeptState {
  const { progress } = recordOf(state);
  const { step, phase } = progress;
  return { state, parent, step, phase, unfinished: isProgressSave(progress) };
}

function newRun(): KeptRun {
  return { sequence: 0, rule: { keep: DEFAULT_KEEP }, states: [], most: SLACK };
}

function trim(run: KeptRun): void {
  run.states = kept(run.states.toReversed(), run.rule).reverse();
  run.most = 2 * run.states.length + SLACK;
}

/**
 * A State that shares no mutable value and has no observer. Frozen data is shared; data that can't be frozen,
 * such as a buffer, is copied by encoding it, which also rejects values that no checkpoint can hold.
 */
function detached<D extends object>(state: State<D>): State<D> {
  return isOpaque(state) ? State.fromJSON<D>(state.toJSON()) : stateOf<D>(recordOf(state));
}
