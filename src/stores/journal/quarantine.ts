import { join } from "node:path";
import type { StoreContext } from "../../checkpoint/store.js";
import { type FileSystem, unless } from "../file/file-system.js";
import { digits, QUARANTINE } from "../file/layout.js";
import { makeFolder } from "../file/make-folder.js";
import { syncFolder } from "../file/sync.js";
import type { CorruptLine } from "./view.js";

/**
 * Copies a line that is not what was written to where a person can look at it, and tells of it once.
 * If that can't be done the next older is used all the same.
 */
export async function setAside(
  { fs, durable }: { readonly fs: FileSystem; readonly durable: boolean },
  folder: string,
  { sequence, inLog, file, offset, expected, actual }: CorruptLine,
  text: Uint8Array,
  emit: StoreContext["emit"],
): Promise<void> {
  const aside = join(folder, QUARANTINE);
  const name = `record_${digits(sequence)}.${inLog ? "log" : "records"}_${digits(file)}.${offset}.json`;
  const path = join(aside, name);
  try {
    await makeFolder(fs, folder, durable);
    await makeFolder(fs, aside, durable);
    const copy = await unless(["EEXIST"], fs.create(path), undefined);
    if (copy === undefined) return;
    try {
      await fs.write(copy, text);
      if (durable) await fs.sync(copy);
    } finally {
      await fs.close(copy);
    }
    if (durable) await syncFolder(fs, aside);
    emit?.("checkpoint.quarantine", { file: path, expected, actual });
  } catch (error) {
    const problem = `record ${sequence} is corrupt, and could not be copied to ${path}: ${String(error)}`;
    emit?.("checkpoint.error", { action: "load", node: "", error: problem });
  }
}
