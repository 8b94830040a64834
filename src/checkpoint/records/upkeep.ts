import { now } from "../../clock.js";
import { TaskSet } from "../../concurrency.js";
import { messageOf } from "../../errors.js";
import type { State } from "../../state/state.js";
import { type KeepRule, prunable } from "../arguments.js";
import type { Retention } from "../store.js";
import type { RecordBackend } from "./backend.js";
import { type IndexEntry, indexEntryOf, RunIndex } from "./run-index.js";
import type { Emit } from "./search.js";

const HOUR = 60 * 60 * 1000;

/** After a record of at least this many bytes, superfluous records are removed immediately. */
const LARGE = 128 * 1024;

/** Removes checkpoints and runs that are no longer kept, in the background. */
export class Upkeep {
  readonly #backend: RecordBackend;
  readonly #retention: Retention | undefined;
  readonly #discardEvery: number;
  readonly #index = new RunIndex();
  readonly #tasks = new TaskSet();
  /** The runs whose superfluous checkpoints could not be removed; retried after a removal that succeeds. */
  readonly #untrimmed = new Map<string, KeepRule>();
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(backend: RecordBackend, retention: Retention | undefined, discardEvery: number) {
    this.#backend = backend;
    this.#retention = retention;
    this.#discardEvery = discardEvery;
  }

  /** Notes a saved record. */
  note(runId: string, entry: IndexEntry): void {
    if (entry.sequence === 1) this.#index.set(runId, []);
    this.#index.add(runId, entry);
  }

  /** Removes the records that a save made superfluous, and old runs if that is due. */
  afterSave<D extends object>(saved: State<D>, rule: KeepRule, emit: Emit): void {
    const { runId, checkpointNode: node, bytes = 0, sequence, status } = saved;
    const ends = status === "completed" || status === "failed";
    const isDue = ends || sequence % this.#discardEvery === 0 || bytes >= LARGE;
    if (rule.keep !== Number.POSITIVE_INFINITY && isDue) {
      this.#background(() => this.#trim(runId, rule), node, emit);
    }
    if (this.#retention === undefined || now() - this.#prunedAt <= HOUR) return;
    this.#prunedAt = now();
    const retention = this.#retention;
    this.#background(() => this.prune(retention), node, emit);
  }

  /** Removes old runs, except those that are claimed or were saved to meanwhile. */
  async prune(retention: Retention): Promise<string[]> {
    const { dryRun = false } = retention;
    const removed: string[] = [];
    for await (const page of prunable(retention, (filter) => this.#backend.runs(filter))) {
      if (page.length === 0) continue;
      const gone = await this.#backend.remove(page, { unclaimed: true, dryRun });
      for (const runId of gone) if (!dryRun) this.#index.forget(runId);
      removed.push(...gone);
    }
    return removed;
  }

  /** Forgets a removed run. */
  forget(runId: string): void {
    this.#index.forget(runId);
  }

  /** Resolves when no work is pending. */
  settled(): Promise<void> {
    return this.#tasks.settled();
  }

  async #trim(runId: string, rule: KeepRule): Promise<void> {
    if (!this.#index.has(runId)) {
      const entries = await this.#backend.headers(runId);
      this.#index.set(runId, entries.filter(({ setAside }) => !setAside).map(indexEntryOf));
    }
    const sequences = this.#index.trim(runId, rule);
    try {
      if (sequences.length > 0) await this.#backend.discard(runId, sequences);
    } catch (error) {
      this.#index.forget(runId);
      this.#untrimmed.set(runId, rule);
      throw error;
    }
    const [late] = this.#untrimmed;
    if (late === undefined) return;
    this.#untrimmed.delete(late[0]);
    await this.#trim(...late);
  }

  /** Runs a task that nobody awaits; its failure is emitted as an event. */
  #background(task: () => Promise<unknown>, node: string, emit: Emit): void {
    this.#tasks.start(task, (error) =>
      emit?.("checkpoint.error", { action: "delete", node, error: messageOf(error) }),
    );
  }
}
