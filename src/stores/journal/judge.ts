import { CheckpointCorruptionError } from "../../errors.js";
import { deletionOf } from "./deletion.js";
import type { Line } from "./line.js";
import { readRecord } from "./record.js";
import { entryAt, type Known } from "./view.js";

/**
 * Takes a line into what is known of its run.
 *
 * @throws SerializationError when a newer version wrote it.
 */
export function judge(known: Known, runId: string, line: Line, text: Buffer): void {
  const where = entryAt(line);
  try {
    if (line.kind === "delete") {
      const { head } = deletionOf(text);
      if (head === undefined || head === known.head?.id) known.clear();
    } else {
      known.add(readRecord(text, "", runId).header, where);
    }
  } catch (error) {
    if (!(error instanceof CheckpointCorruptionError)) throw error;
    const { expected, actual } = error;
    known.addCorrupt({ ...where, expected, actual });
  }
}
