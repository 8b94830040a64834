import { faultOf, partsOf, toLine } from "./line.js";
import { corrupt } from "./record.js";

/** The end of a run. */
export interface Deletion {
  /** The newest record that the run must have, or it goes on; any if absent. */
  readonly head?: string;
}

/** The line that ends a run. */
export function deletionLine(runId: string, sequence: number, head?: string): Buffer {
  return toLine("delete", JSON.stringify({ runId, sequence, ...(head !== undefined && { head }) }));
}

/**
 * What such a line says.
 *
 * @throws CheckpointCorruptionError when it is not what was written.
 */
export function deletionOf(line: Buffer): Deletion {
  const fault = faultOf(line);
  if (fault !== undefined) throw corrupt("a deletion", fault.expected, fault.actual);
  const { head } = JSON.parse(partsOf(line)?.header ?? "{}") as { head?: unknown };
  return typeof head === "string" ? { head } : {};
}
