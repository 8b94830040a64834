import { Turns } from "../file/turns.js";
import { type Line, runIdOf } from "./line.js";
import { previousOf, type RecordHeader } from "./record.js";

/*
 * The records of a run are a chain: each names the one before it. Which records count is decided by
 * their order in the log alone, so every process that reads it comes to the same answer: a record
 * counts if, at its place, the one that it names is the newest. Of two that name the same one the
 * first counts, the other is void, and whoever wrote it finds that out when it reads what lies
 * between its last knowledge and its own record.
 */

/** Where a line is. */
export interface Spot {
  /** The number of the log's file it is in, or of the run's file of records. */
  readonly file: number;
  readonly inLog: boolean;
  readonly offset: number;
  readonly length: number;
}

/** A line that is not what was written. */
export interface CorruptLine extends Spot {
  readonly sequence: number;
  readonly expected: string;
  readonly actual: string;
}

/** A record that counts, and where it is. */
export interface Entry extends Spot {
  readonly sequence: number;
  readonly snapshot: boolean;
  /** Whether the record that it is a patch to is lost. */
  readonly broken: boolean;
  /** Its id, where it is known already. */
  readonly id?: string;
}

/** What a header says of a record's place in its chain. */
export type Link = Pick<
  RecordHeader,
  "sequence" | "checkpointId" | "parentId" | "previous" | "keep"
>;

/** The newest record of a run. */
export interface Head {
  readonly id: string;
  readonly sequence: number;
  readonly keep: number;
}

/** What is known of a run. */
export class Known {
  /** Oldest first; those in front that nothing needs any more may be gone. */
  entries: Entry[] = [];
  head: Head | undefined;
  /** The highest sequence that was taken. */
  sequence = 0;
  /** The last file of the log that the run's files of records have taken in. */
  movedUpTo = 0;
  /** Whether, since the newest record, something was there that can't be read. */
  damaged = false;
  /** Lines of this run that are not what was written. */
  readonly corrupt: CorruptLine[] = [];
  /** Records that were found not to be what was written. */
  readonly #spoiled = new Set<Entry>();

  /** Takes a record in, if it counts. */
  add(header: Link, where: Omit<Entry, "sequence" | "broken" | "id">): boolean {
    const { sequence, checkpointId: id, keep = Number.POSITIVE_INFINITY } = header;
    const follows = previousOf(header) === (this.head?.id ?? "");
    if (!follows && !(this.damaged && sequence > this.sequence)) return false;
    const { file, inLog, offset, length, snapshot } = where;
    const broken = !follows && !snapshot;
    this.entries.push({ file, inLog, offset, length, sequence, snapshot, broken, id });
    this.head = { id, sequence, keep };
    this.sequence = Math.max(this.sequence, sequence);
    this.damaged = false;
    return true;
  }

  /** Notes a line that is not what was written. It had the next sequence, as far as can be seen. */
  addCorrupt(line: CorruptLine): void {
    this.corrupt.push(line);
    this.damaged = true;
    if (line.sequence === this.sequence + 1) this.sequence++;
  }

  /** Notes that a record is not what was written. */
  spoil(entry: Entry): void {
    this.#spoiled.add(entry);
  }

  /** Ends the run. What was corrupt in it does not matter any more. */
  clear(): void {
    this.entries = [];
    this.corrupt.length = 0;
    this.head = undefined;
    this.sequence = 0;
    this.damaged = false;
  }

  /** Whether there is nothing of the run, not even something that can't be read. */
  get isEmpty(): boolean {
    return this.head === undefined && this.corrupt.length === 0;
  }

  /** The newest `keep` records. */
  get kept(): readonly Entry[] {
    const first = this.entries.findIndex(({ snapshot }) => snapshot);
    const loadable = first > 0 ? this.entries.slice(first) : this.entries;
    return loadable.slice(-(this.head?.keep ?? Number.POSITIVE_INFINITY));
  }

  /** Those, and the records that they are patches to. */
  get needed(): readonly Entry[] {
    const [oldest] = this.kept;
    if (oldest === undefined) return [];
    let from = this.entries.indexOf(oldest);
    while (from > 0 && this.entries[from]?.snapshot === false) from--;
    return this.entries.slice(from);
  }

  /** The records that make up the State of one, from a snapshot on; `undefined` when one is lost. */
  chainOf(entry: Entry): readonly Entry[] | undefined {
    const end = this.entries.indexOf(entry);
    for (let from = end; from >= 0; from--) {
      const one = this.entries[from];
      if (one === undefined || one.broken || this.#spoiled.has(one)) return undefined;
      if (one.snapshot) return this.entries.slice(from, end + 1);
    }
    return undefined;
  }
}

/** A run, as this process sees it in the log. */
export class RunView {
  /** Names the run in lines. */
  readonly key: string;
  readonly runId: string;
  /** All its lines in the log, in their order; nothing of them is verified. */
  lines: Line[] = [];
  /** What they and its files of records come to; found out when it is needed. */
  known: Known | undefined;
  /** Changes whenever the lines do. */
  version = 0;
  /** How many are using it. */
  pins = 0;
  /** Records that could not be written, so it seemed, each with the sequence it was built on. */
  readonly unsure = new Map<string, number>();

  readonly #turns = new Turns();

  constructor(key: string) {
    this.key = key;
    this.runId = runIdOf(key);
  }

  /** Does one thing at a time with the run. */
  inTurn<T>(action: () => Promise<T>): Promise<T> {
    return this.#turns.take(action);
  }
}

/** The place of a record in the log. */
export function entryAt({ kind, log, offset, length, sequence }: Line): Entry {
  const snapshot = kind === "snapshot";
  return { file: log, inLog: true, offset, length, sequence, snapshot, broken: false };
}
