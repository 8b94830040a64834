import { type CheckpointAt, isNewest, noneWhole, notFound } from "../../checkpoint/store.js";
import { CheckpointCorruptionError } from "../../errors.js";

/** What was found of a run that has nothing to load. */
export interface NothingLeft {
  readonly runId: string;
  readonly at: CheckpointAt;
  /** What is wrong with what was read. */
  readonly faults: readonly CheckpointCorruptionError[];
  /** The run's folder for what is not what was written, and the names in it. */
  readonly aside: string;
  readonly quarantined: readonly string[];
}

/** The error for a run that has nothing to load: it is not there, or all of it is corrupt. */
export function nothingLeft({ runId, at, faults, aside, quarantined }: NothingLeft): Error {
  const run = `run ${JSON.stringify(runId)}`;
  const [first] = faults;
  if (first !== undefined) {
    const { expected, actual } = first;
    const reasons = faults.map(({ message }) => message).join("; ");
    return new CheckpointCorruptionError(`${noneWhole(runId, at)}: ${reasons}. See ${aside}`, {
      expected,
      actual,
      cause: first,
    });
  }
  if (!isNewest(at) || quarantined.length === 0) return notFound(runId, at);
  return new CheckpointCorruptionError(
    `${run} has only corrupt checkpoints, in ${aside}: ${quarantined.join(", ")}`,
    { expected: "a checkpoint that is whole", actual: "none outside of quarantine" },
  );
}
