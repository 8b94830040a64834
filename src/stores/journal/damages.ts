import type { FileSystem } from "../file/file-system.js";
import { withFile } from "../file/open-file.js";
import { type Damage, faultOf, type Line, runIdOf, scan, toBuffer } from "./line.js";

type Position = Pick<Line, "log" | "offset">;

/**
 * What in the log is not what was written. It may have been of any run: a line that is broken can't be
 * trusted to say whose it is. So where a run's records don't go on from each other, whatever is
 * damaged between them may be what is missing.
 */
export class Damages {
  #found: Damage[] = [];
  /** How far the lines of each file were verified. */
  readonly #verified = new Map<number, number>();

  /** All of them. */
  get all(): readonly Damage[] {
    return this.#found;
  }

  /** Notes one; `false` when it is known. */
  add(damage: Damage): boolean {
    if (this.#found.some((known) => isAt(known, damage))) return false;
    this.#found.push(damage);
    return true;
  }

  /** Whether there is one between two lines; between the beginning, or the end, and one where the other is missing. */
  isBetween(first: Position | undefined, last: Position | undefined): boolean {
    return this.#found.some((damage) => isAfter(damage, first) && isAfter(last, damage));
  }

  /** Forgets files of the log. */
  forget(gone: ReadonlySet<number>): void {
    this.#found = this.#found.filter(({ log }) => !gone.has(log));
    for (const log of gone) this.#verified.delete(log);
  }

  /**
   * Verifies all lines of a file of the log that were not verified yet.
   *
   * @returns whether some are not what was written, and it was not known.
   */
  async verify(fs: FileSystem, path: string, log: number): Promise<boolean> {
    let isNew = false;
    await withFile(fs, path, async (file, size) => {
      const from = this.#verified.get(log) ?? 0;
      const bytes = toBuffer(await fs.read(file, size - from, from));
      const done = scan(bytes, log, from, (line) => {
        const start = line.offset - from;
        if (line.kind === "damage") return;
        if (faultOf(bytes.subarray(start, start + line.length)) === undefined) return;
        isNew = this.add(damageOf(line)) || isNew;
      });
      this.#verified.set(log, from + done);
    });
    return isNew;
  }
}

/** A line that is not what was written, as damage. A name that is broken is no run's. */
export function damageOf({ log, offset, length, run }: Line): Damage {
  const named = runIdOf(run) === "" ? {} : { run };
  return { kind: "damage", torn: false, log, offset, length, ...named };
}

function isAt(one: Position, other: Position): boolean {
  return one.log === other.log && one.offset === other.offset;
}

function isAfter(one: Position | undefined, other: Position | undefined): boolean {
  if (one === undefined || other === undefined) return true;
  return one.log > other.log || (one.log === other.log && one.offset > other.offset);
}
