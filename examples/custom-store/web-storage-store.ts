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
    if (!(state instanceof State)) throw new ConfigError("state", "wants a State");
    const { runId, sequence, checkpointId: parentId } = state;
    const kept = this.#read(runId);
    const newest = kept.at(-1)?.state.sequence ?? 0;
    // Somebody else has saved since this State was loaded.
    if (newest !== sequence) throw new CheckpointConflictError(runId, sequence, newest);
    const saved = state.savedAs({ sequence: sequence + 1, checkpointId: crypto.randomUUID() });
    // toJSON refuses what can't be kept exactly, and keeps the rest with its types.
    const all = [...kept, { state: saved.toJSON(), parentId }];
    this.#storage.setItem(
      PREFIX + runId,
      JSON.stringify(all.slice(-(options?.keep ?? this.#keep))),
    );
    return saved;
  }

  async load<D extends object>(runId: string, at: CheckpointAt = {}): Promise<State<D>> {
    const { step, checkpointId } = at;
    if (step !== undefined && !(Number.isInteger(step) && step >= 0)) {
      throw new ConfigError("step", `wants a whole number from 0 up, got ${step}`);
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
      const {
        sequence,
        step,
        checkpointNode: node,
        status,
        timestamp,
        checkpointId,
        reason,
      } = state;
      return { sequence, step, node, status, timestamp, checkpointId, parentId, reason };
    });
    return entries.reverse();
  }

  #read(runId: string): readonly Kept[] {
    return JSON.parse(this.#storage.getItem(PREFIX + checked(runId)) ?? "[]");
  }
}

/** Refuses what no run can be called, as a State does. */
function checked(runId: string): string {
  return State.create({}, { runId }).runId;
}
