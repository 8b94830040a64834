import { join } from "node:path";
import type { FileSystem } from "../file/file-system.js";
import { folderName } from "../file/layout.js";
import { withFile } from "../file/open-file.js";
import { recordsName } from "./layout.js";
import { toBuffer } from "./line.js";
import type { Log } from "./log.js";
import type { Spot } from "./view.js";

/** What lies between two lines of one file is read with them when it is not more than this. */
const GAP = 64 * 1024;

/** Reads lines out of the log and the runs' files of records. */
export class LineFiles {
  readonly #fs: FileSystem;
  readonly #root: string;
  readonly #log: Log;

  constructor(fs: FileSystem, root: string, log: Log) {
    this.#fs = fs;
    this.#root = root;
    this.#log = log;
  }

  /** The folder of a run. */
  folder(runId: string): string {
    return join(this.#root, folderName(runId));
  }

  /** The file that a line is in. */
  path(runId: string, { inLog, file }: Spot): string {
    return inLog ? this.#log.path(file) : join(this.folder(runId), recordsName(file));
  }

  /** The lines at these places, `undefined` when a file is gone. */
  async read(runId: string, spots: readonly Spot[]): Promise<Buffer[] | undefined> {
    const fs = this.#fs;
    const texts = new Map<Spot, Buffer>();
    const byPath = new Map<string, Spot[]>();
    for (const spot of spots) {
      const path = this.path(runId, spot);
      byPath.set(path, [...(byPath.get(path) ?? []), spot]);
    }
    for (const [path, wanted] of byPath) {
      const found = await withFile(fs, path, async (file) => {
        for (const group of grouped(wanted)) {
          const [start, end] = [group[0]?.offset ?? 0, endOf(group.at(-1))];
          const bytes = toBuffer(await fs.read(file, end - start, start));
          for (const spot of group) {
            const from = spot.offset - start;
            texts.set(spot, bytes.subarray(from, from + spot.length));
          }
        }
        return true;
      });
      if (found === undefined) return undefined;
    }
    return spots.map((spot) => texts.get(spot) ?? Buffer.alloc(0));
  }
}

function endOf(spot: Spot | undefined): number {
  return spot === undefined ? 0 : spot.offset + spot.length;
}

/** Places that are near enough to each other to be read at once. */
function grouped(spots: readonly Spot[]): Spot[][] {
  const groups: Spot[][] = [];
  for (const spot of [...spots].sort((a, b) => a.offset - b.offset)) {
    const group = groups.at(-1);
    if (group !== undefined && spot.offset - endOf(group.at(-1)) <= GAP) group.push(spot);
    else groups.push([spot]);
  }
  return groups;
}
