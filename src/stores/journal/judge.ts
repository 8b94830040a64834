import { CheckpointCorruptionError } from "../../errors.js";
import { deletionOf } from "./deletion.js";
import type { Line } from "./line.js";
import { readRecord } from "./record.js";
import { entryAt, type Known } from "./view.js";

/**
 * Takes a line into what is known of its run.
 *
 * @returns `corrupt` when it is not what was written; `gap` when it does not count, but comes later
 *   than all that is known, so that something before it may be missing.
 * @throws SerializationError when a newer version wrote it.
 */
export function judge(
  known: Known,
  runId: string,
  line: Line,
  text: Buffer,
): "corrupt" | "gap" | undefined {
  const where = entryAt(line);
  try {
    if (line.kind === "delete") {
      const { head } = deletionOf(text);
      if (head === undefined || head === known.head?.id) known.clear();
      return undefined;
    }
    const { header } = readRecord(text, "", runId);
    return !known.add(header, where) && header.sequence > known.sequence ? "gap" : undefined;
  } catch (error) {
    if (!(error instanceof CheckpointCorruptionError)) throw error;
    const { expected, actual } = error;
    known.addCorrupt({ ...where, expected, actual });
    return "corrupt";
  }
}
