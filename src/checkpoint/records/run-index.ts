import { type Keepable, type KeepRule, kept } from "../arguments.js";
import type { HeaderEntry } from "./backend.js";

/** The facts about a record that retention needs. */
export interface IndexEntry extends Keepable {
  /** Its sequence. */
  readonly sequence: number;
  /** The sequence of the snapshot it builds on. */
  readonly base: number;
}

/** The number of runs to keep in memory; others are read again when they are saved to. */
const REMEMBERED = 512;

/**
 * The records of the runs that this store saves to, so that a save knows what it makes superfluous without reading
 * anything.
 */
export class RunIndex {
  /** Newest last; the least recently used run first. */
  readonly #runs = new Map<string, IndexEntry[]>();

  /** Whether the records of a run are known. */
  has(runId: string): boolean {
    return this.#runs.has(runId);
  }

  /** Sets all records of a run. */
  set(runId: string, entries: readonly IndexEntry[]): void {
    this.#runs.set(
      runId,
      entries.toSorted((a, b) => a.sequence - b.sequence),
    );
    for (const oldest of this.#runs.keys()) {
      if (this.#runs.size <= REMEMBERED) break;
      this.#runs.delete(oldest);
    }
  }

  /** Adds a saved record; does nothing if those before it are unknown. */
  add(runId: string, entry: IndexEntry): void {
    const entries = this.#runs.get(runId);
    if (entries === undefined) return;
    this.#runs.delete(runId);
    this.#runs.set(runId, entries);
    if ((entries.at(-1)?.sequence ?? 0) < entry.sequence) entries.push(entry);
  }

  /** Forgets a run. */
  forget(runId: string): void {
    this.#runs.delete(runId);
  }

  /** Removes the records of a run that are neither kept nor needed by one that is; returns their sequences. */
  trim(runId: string, rule: KeepRule): number[] {
    const entries = this.#runs.get(runId) ?? [];
    const keeps = kept(entries.toReversed(), rule).reverse();
    const stays: IndexEntry[] = [];
    const goes: number[] = [];
    let next = 0;
    for (const entry of entries) {
      while ((keeps[next]?.sequence ?? Number.POSITIVE_INFINITY) < entry.sequence) next++;
      // A later record never builds on an earlier snapshot than this one, so the next kept one decides.
      const isNeeded = (keeps[next]?.base ?? Number.POSITIVE_INFINITY) <= entry.sequence;
      if (isNeeded) stays.push(entry);
      else goes.push(entry.sequence);
    }
    if (goes.length > 0) this.#runs.set(runId, stays);
    return goes;
  }
}

/** The facts about a record that retention needs; one whose header can't be read counts as a progress save. */
export function indexEntryOf({ sequence, header }: HeaderEntry): IndexEntry {
  if (header === undefined)
    return { sequence, step: 0, unfinished: true, phase: "", base: sequence };
  const { step, unfinished = false, phase = "", base = sequence } = header;
  return { sequence, step, unfinished, phase, base };
}
