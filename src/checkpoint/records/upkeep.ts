import { now } from "../../clock.js";
import { TaskSet } from "../../concurrency.js";
import { messageOf } from "../../errors.js";
import { hasEnded } from "../../state/fields.js";
import type { State } from "../../state/state.js";
import { type Keepable, type KeepRule, kept, prunable } from "../arguments.js";
import type { Retention, StoreContext } from "../store.js";
import type { HeaderEntry, NewRecord, RecordBackend } from "./backend.js";

export type Emit = StoreContext["emit"];

/** The facts about a record that retention needs. */
interface IndexEntry extends Keepable {
  /** Its sequence. */
  readonly sequence: number;
  /** The sequence of the snapshot it builds on. */
  readonly base: number;
}

/** The number of runs to keep in memory; others are read again when they are saved to. */
const REMEMBERED = 512;

const HOUR = 60 * 60 * 1000;

/** After a record of at least this many bytes, superfluous records are removed immediately. */
const LARGE = 128 * 1024;

/** Removes checkpoints and runs that are no longer kept, in the background. */
export class Upkeep {
  readonly #backend: RecordBackend;
  readonly #retention: Retention | undefined;
  readonly #discardEvery: number;
  /**
   * The records of the runs that are saved to, so that a save knows what it makes superfluous without reading anything:
   * newest last, the least recently used run first.
   */
  readonly #known = new Map<string, IndexEntry[]>();
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
  note(runId: string, { sequence, fields: header }: NewRecord): void {
    const entries = sequence === 1 ? [] : this.#known.get(runId);
    // Nothing to add to if those before it are unknown.
    if (entries === undefined) return;
    if ((entries.at(-1)?.sequence ?? 0) < sequence)
      entries.push(indexEntryOf({ sequence, header }));
    this.#remember(runId, entries);
  }

  /** Removes the records that a save made superfluous, and old runs if that is due. */
  afterSave<D extends object>(saved: State<D>, rule: KeepRule, emit: Emit): void {
    const { runId, checkpointNode: node, bytes = 0, sequence } = saved;
    const isDue = hasEnded(saved) || sequence % this.#discardEvery === 0 || bytes >= LARGE;
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
      for (const runId of gone) if (!dryRun) this.forget(runId);
      removed.push(...gone);
    }
    return removed;
  }

  /** Forgets a removed run. */
  forget(runId: string): void {
    this.#known.delete(runId);
  }

  /** Resolves when no work is pending. */
  settled(): Promise<void> {
    return this.#tasks.settled();
  }

  #remember(runId: string, entries: IndexEntry[]): void {
    this.#known.delete(runId);
    this.#known.set(runId, entries);
    const [oldest] = this.#known.keys();
    if (this.#known.size > REMEMBERED && oldest !== undefined) this.#known.delete(oldest);
  }

  async #trim(runId: string, rule: KeepRule): Promise<void> {
    const entries = this.#known.get(runId) ?? (await this.#read(runId));
    const sequences = superfluous(entries, rule);
    if (sequences.length > 0) {
      const goes = new Set(sequences);
      this.#known.set(
        runId,
        entries.filter(({ sequence }) => !goes.has(sequence)),
      );
    }
    try {
      if (sequences.length > 0) await this.#backend.discard(runId, sequences);
    } catch (error) {
      this.forget(runId);
      this.#untrimmed.set(runId, rule);
      throw error;
    }
    const [late] = this.#untrimmed;
    if (late === undefined) return;
    this.#untrimmed.delete(late[0]);
    await this.#trim(...late);
  }

  async #read(runId: string): Promise<IndexEntry[]> {
    const all = await this.#backend.headers(runId);
    const entries = all.filter(({ setAside }) => !setAside).map(indexEntryOf);
    entries.sort((a, b) => a.sequence - b.sequence);
    this.#remember(runId, entries);
    return entries;
  }

  /** Runs a task that nobody awaits; its failure is emitted as an event. */
  #background(task: () => Promise<unknown>, node: string, emit: Emit): void {
    this.#tasks.start(task, (error) =>
      emit?.("checkpoint.error", { action: "delete", node, error: messageOf(error) }),
    );
  }
}

/** The sequences of the records of a run that are neither kept nor needed by one that is. */
function superfluous(entries: readonly IndexEntry[], rule: KeepRule): number[] {
  const keeps = kept(entries.toReversed(), rule).reverse();
  const goes: number[] = [];
  let next = 0;
  for (const { sequence } of entries) {
    while ((keeps[next]?.sequence ?? Number.POSITIVE_INFINITY) < sequence) next++;
    // A later record never builds on an earlier snapshot than this one, so the next kept one decides.
    if ((keeps[next]?.base ?? Number.POSITIVE_INFINITY) > sequence) goes.push(sequence);
  }
  return goes;
}

/** The checkpoints of a run that are not set aside and that its newest record keeps, newest first. */
export async function keptEntries(backend: RecordBackend, runId: string): Promise<HeaderEntry[]> {
  const all = await backend.headers(runId);
  const entries = all.filter(({ setAside }) => !setAside);
  const newest = entries.find(({ header }) => header !== undefined)?.header;
  const { keep = Number.POSITIVE_INFINITY, keepPerPhase } = newest ?? {};
  const keepable = entries.map((entry) => ({ ...indexEntryOf(entry), entry }));
  const stays = new Set(kept(keepable, { keep, keepPerPhase }).map(({ entry }) => entry));
  return entries.filter((entry) => entry.header === undefined || stays.has(entry));
}

/** The facts about a record that retention needs; one whose header can't be read counts as a progress save. */
function indexEntryOf({ sequence, header }: Pick<HeaderEntry, "sequence" | "header">): IndexEntry {
  if (header === undefined)
    return { sequence, step: 0, unfinished: true, phase: "", base: sequence };
  const { step, unfinished = false, phase = "", base = sequence } = header;
  return { sequence, step, unfinished, phase, base };
}
