import { join } from "node:path";
import { type FileSystem, unless } from "../file/file-system.js";
import { namesIn } from "../file/listing.js";
import { withFile } from "../file/open-file.js";
import { reserve } from "../file/reserve.js";
import { SharedRead } from "../file/shared-read.js";
import { syncFolder } from "../file/sync.js";
import { anchorsName, anchorsNumber, temporaryRecordsName } from "./layout.js";
import { faultOf, partsOf, toBuffer, toLine } from "./line.js";
import type { RecordsFile } from "./records-file.js";
import type { Known } from "./view.js";

/*
 * When the log is compacted up to a file, most runs need nothing of it: all that they keep is in
 * later files. Of those only one thing has to be remembered: which record was their newest then, so
 * that it can be told which of the next ones counts. That is in one file for all of them. It also
 * names runs that have ended, so that a file of records that comes too late is not taken for a run.
 */

/** The newest record of a run at the end of a file of the log. */
export interface Anchor {
  /** Its id; `""` when the run has ended. */
  readonly id: string;
  readonly sequence: number;
  /** The number of that file. A run's file of records with this number or a higher one knows more. */
  readonly at: number;
}

/** What is to be remembered of the files of the log that are gone. */
export interface Anchors {
  /** The number of the file that says so; 0 when there is none. */
  readonly number: number;
  /** The number of the next one: no file has had it yet. */
  readonly next: number;
  /** The last file of the log that was compacted. */
  readonly upTo: number;
  /** By the run's name in lines. */
  readonly runs: ReadonlyMap<string, Anchor>;
  /** Whether the file is not what was written. */
  readonly damaged: boolean;
}

/** How many runs that have ended are remembered. */
const ENDED = 1000;

const none = { number: 0, upTo: 0, runs: new Map(), damaged: false } as const;

/**
 * The files of the anchors; the one with the highest number counts. Whoever compacts writes the one
 * that comes after the one it began with. Of several only one can, and the others have done nothing.
 * They are synced whatever the store is told of its saves: what the log had for long is to outlive its end.
 */
export class AnchorsFile {
  readonly #fs: FileSystem;
  readonly #folder: string;
  readonly #reads = new SharedRead(() => this.#read());
  #last: Omit<Anchors, "next"> = none;

  constructor(fs: FileSystem, folder: string) {
    this.#fs = fs;
    this.#folder = folder;
  }

  /** What the file says now. */
  read(): Promise<Anchors> {
    return this.#reads.get();
  }

  async #read(): Promise<Anchors> {
    const fs = this.#fs;
    for (;;) {
      const numbers = await this.#numbers();
      const next = (numbers.at(-1) ?? 0) + 1;
      let isGone = false;
      for (const number of numbers.reverse()) {
        if (this.#last.number === number) return { ...this.#last, next };
        const bytes = await withFile(fs, this.#path(number), (file, size) => fs.read(file, size));
        isGone = bytes === undefined;
        if (bytes === undefined) break;
        // Where there are no links, a name can be taken before anything is behind it; whoever dies then leaves it so.
        if (bytes.length === 0) continue;
        this.#last = parse(toBuffer(bytes), number);
        return { ...this.#last, next };
      }
      if (!isGone) return { ...none, next };
    }
  }

  /**
   * Writes the file that comes after another; it is there for good when the promise resolves.
   *
   * @returns whether nobody else did.
   */
  async write(before: Anchors, upTo: number, runs: ReadonlyMap<string, Anchor>): Promise<boolean> {
    const fs = this.#fs;
    const number = before.next;
    const ended = [...runs].filter(([, { id }]) => id === "").slice(-ENDED);
    const going = [...runs].filter(([, { id }]) => id !== "");
    const all = [...ended, ...going].map(([key, { id, sequence, at }]) => [key, id, sequence, at]);
    const temporary = join(this.#folder, temporaryRecordsName(number, fs.owner));
    const file = await fs.create(temporary);
    try {
      await fs.write(file, toLine("anchors", JSON.stringify({ upTo, runs: all })));
      await fs.sync(file);
      const how = await reserve(fs, temporary, this.#path(number));
      if (how === "taken" || how === "gone") return false;
      if (how === "reserved") await fs.rename(temporary, this.#path(number));
    } finally {
      await fs.close(file).catch(() => {});
      await fs.unlink(temporary).catch(() => {});
    }
    // Files go only when there is a higher one: so if there is none, there was none before.
    const isLast = (await this.#numbers()).at(-1) === number;
    await syncFolder(fs, this.#folder);
    return isLast;
  }

  /** Removes the files of lower numbers than the one that counts. */
  async sweep(): Promise<void> {
    const { number: counts } = await this.read();
    for (const number of (await this.#numbers()).filter((one) => one < counts)) {
      await unless(["ENOENT"], this.#fs.unlink(this.#path(number)), undefined);
    }
  }

  #path(number: number): string {
    return join(this.#folder, anchorsName(number));
  }

  async #numbers(): Promise<number[]> {
    const names = (await namesIn(this.#fs, this.#folder)) ?? [];
    return names.flatMap((name) => anchorsNumber(name) ?? []).sort((a, b) => a - b);
  }
}

/** The files that say more of a run than its anchor does; an anchor is where to go on when there is none. */
export function takeAnchor(
  known: Known,
  key: string,
  files: readonly RecordsFile[],
  { upTo, runs, damaged }: Anchors,
): readonly RecordsFile[] {
  known.movedUpTo = upTo;
  known.damaged = damaged;
  const anchor = runs.get(key);
  if (anchor !== undefined && anchor.id !== "")
    known.head = { ...anchor, keep: Number.POSITIVE_INFINITY };
  known.sequence = anchor?.sequence ?? 0;
  const { at = 0 } = anchor ?? {};
  return files.filter((file) => file.number >= at && (damaged || isDone(file, upTo)));
}

/** Whether a file of records is there for good: one that can't be read may be of a compaction that did not end. */
export function isDone({ newest, number }: Pick<RecordsFile, "newest" | "number">, upTo: number) {
  return newest !== undefined || number <= upTo;
}

function parse(line: Buffer, number: number): Omit<Anchors, "next"> {
  if (faultOf(line) !== undefined) return { ...none, number, damaged: true };
  const { runs, upTo } = JSON.parse(partsOf(line)?.header ?? "{}") as {
    upTo: number;
    runs: [string, string, number, number][];
  };
  const anchors = runs.map(([key, id, sequence, at]) => [key, { id, sequence, at }] as const);
  return { number, upTo, runs: new Map(anchors), damaged: false };
}
