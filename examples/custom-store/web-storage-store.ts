import {
  type CheckpointAt,
  CheckpointConflictError,
  CheckpointNotFoundError,
  type CheckpointStore,
  ConfigError,
  type HistoryEntry,
  type SaveOptions,
  State,
  type StateJSON,
} from "waymark";

/** What the store needs of `localStorage` or `sessionStorage`. */
export interface WebStorage {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** A checkpoint, and the id of the one it was made from. */
interface Kept {
  readonly state: StateJSON;
  readonly parentId: string;
}

const PREFIX = "waymark:";

/**
 * Keeps checkpoints in the browser, where they outlive a reload. All of a run are one item: an item
 * is written in one piece or not at all, and between reading and writing it nobody else gets a turn.
 */
export class WebStorageStore implements CheckpointStore {
  readonly #storage: WebStorage;
  readonly #keep: number;

  constructor(storage: WebStorage, { keep = 5 }: { readonly keep?: number } = {}) {
    this.#storage = storage;
    this.#keep = keep;
  }

  async save<D extends object>(state: State<D>, options?: SaveOptions): Promise<State<D>> {
    if (!(state instanceof State)) throw new ConfigError("state", "must be a State");
    const { runId, sequence, checkpointId: parentId } = state;
    const before = this.#read(runId);
    const newest = before.at(-1)?.state.sequence ?? 0;
    // Somebody else has saved since this State was loaded.
    if (newest !== sequence) throw new CheckpointConflictError(runId, sequence, newest);
    const saved = state.savedAs({ sequence: sequence + 1, checkpointId: crypto.randomUUID() });
    // toJSON refuses what can't be kept exactly, and keeps the rest with its types.
    const all = [...before, { state: saved.toJSON(), parentId }];
    const stays = kept(all, options?.keep ?? this.#keep, options?.keepPerPhase ?? 0);
    this.#storage.setItem(PREFIX + runId, JSON.stringify(stays));
    return saved;
  }

  async load<D extends object>(runId: string, at: CheckpointAt = {}): Promise<State<D>> {
    const { step, checkpointId } = at;
    if (step !== undefined && !(Number.isInteger(step) && step >= 0)) {
      throw new ConfigError("step", `must be an integer ≥ 0; got ${step}`);
    }
    const found = this.#read(runId).findLast(
      ({ state }) =>
        (step === undefined || step === state.step) &&
        (checkpointId === undefined || checkpointId === state.checkpointId),
    );
    if (found === undefined) throw new CheckpointNotFoundError(runId);
    return State.fromJSON<D>(found.state);
  }

  async delete(runId: string): Promise<void> {
    this.#storage.removeItem(PREFIX + checked(runId));
  }

  async list(): Promise<string[]> {
    const keys = Array.from({ length: this.#storage.length }, (_, at) => this.#storage.key(at));
    return keys.flatMap((key) => (key?.startsWith(PREFIX) ? [key.slice(PREFIX.length)] : []));
  }

  /** Optional: what `graph.history` shows. */
  async history(runId: string): Promise<HistoryEntry[]> {
    const entries = this.#read(runId).map(({ state, parentId }) => {
      const { sequence, step, checkpointNode: node, phase, status, timestamp, savedAt } = state;
      const { checkpointId, reason, metadata = {} } = state;
      const unfinished = state.unfinished !== undefined;
      const entry = { sequence, step, node, phase, status, timestamp, savedAt, checkpointId };
      return { ...entry, parentId, reason, unfinished, metadata };
    });
    return entries.reverse();
  }

  #read(runId: string): readonly Kept[] {
    return JSON.parse(this.#storage.getItem(PREFIX + checked(runId)) ?? "[]");
  }
}

/**
 * Of each of the newest steps the newest checkpoint, and the newest checkpoint of all, which may be in
 * the middle of a node: progress saves never push a step out.
 */
function kept(all: readonly Kept[], keep: number, keepPerPhase: number): Kept[] {
  const steps = new Set<number>();
  const phases = new Map<string, number>();
  const stays = all.toReversed().filter(({ state }, index) => {
    if (state.unfinished !== undefined) return index === 0;
    if (steps.has(state.step)) return false;
    const inPhase = phases.get(state.phase) ?? 0;
    const isKept = steps.size < keep || (state.phase !== "" && inPhase < keepPerPhase);
    steps.add(state.step);
    phases.set(state.phase, inPhase + 1);
    return isKept;
  });
  return (stays.length === 1 ? all.slice(-2) : stays.reverse()) as Kept[];
}

/** Refuses what no run can be called, as a State does. */
function checked(runId: string): string {
  return State.create({}, { runId }).runId;
}
