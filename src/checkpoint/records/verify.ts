import { faultOf } from "../any-store.js";
import type { Finding, Problem } from "../store.js";
import type { HeaderEntry, RecordBackend, StoredRecord } from "./backend.js";
import {
  isLinked,
  type RecordCodec,
  stateFrom,
  type VerifiedRecord,
  verifyRecord,
} from "./codec.js";
import { previousOf } from "./header.js";

/** The number of records to read at once. */
const PAGE = 16;

/** The progress of a walk through the records of a run. */
interface Walk {
  /** The tree of the previous record, if it could be made. */
  tree: unknown;
  /** The previous record. */
  before: VerifiedRecord | undefined;
}

/** Reads all records of a run once, oldest first, and yields what is wrong with them. */
export async function* verifyRun(
  backend: RecordBackend,
  codec: RecordCodec,
  runId: string,
): AsyncGenerator<Finding> {
  const entries = (await backend.headers(runId)).toReversed();
  const finding = (entry: HeaderEntry, problem: Problem, expected: string, actual: string) => {
    return { runId, sequence: entry.sequence, problem, expected, actual };
  };
  const walk: Walk = { tree: undefined, before: undefined };
  let whole = 0;
  let previous: HeaderEntry | undefined;
  for (let from = 0; from < entries.length; from += PAGE) {
    const page = entries.slice(from, from + PAGE);
    const [first, last] = [page[0]?.sequence ?? 0, page.at(-1)?.sequence ?? 0];
    const found = await backend.records(runId, first, last);
    const records = new Map(found.map((record) => [record.sequence, record]));
    for (const entry of page) {
      if (entry.setAside) {
        yield finding(entry, "quarantined", "an intact checkpoint", "one that was set aside");
        continue;
      }
      if (isGap(previous, entry)) {
        const missing = `checkpoint ${entry.sequence - 1}`;
        yield finding({ ...entry, sequence: entry.sequence - 1 }, "gap", missing, "nothing");
      }
      previous = entry;
      const stored = records.get(entry.sequence);
      // A run that continues discards old checkpoints.
      if (stored === undefined) continue;
      const problem = await check(codec, runId, stored, walk);
      if (problem === undefined) whole++;
      else yield finding(entry, problem.problem, problem.expected, problem.actual);
    }
  }
  if (whole === 0 && entries.length > 0) {
    const expected = "an intact checkpoint";
    yield { runId, sequence: 0, problem: "empty", expected, actual: "none" };
  }
}

/** Whether a record names a predecessor other than the record before it here. */
function isGap(before: HeaderEntry | undefined, { header, sequence }: HeaderEntry): boolean {
  if (header?.base === undefined || before?.header === undefined) return false;
  return before.sequence < sequence - 1 && previousOf(header) !== before.header.checkpointId;
}

/**
 * What is wrong with a record; advances the walk to it or, if it is damaged, resets the walk until the next
 * snapshot.
 */
async function check(
  codec: RecordCodec,
  runId: string,
  stored: StoredRecord,
  walk: Walk,
): Promise<Pick<Finding, "problem" | "expected" | "actual"> | undefined> {
  const { tree, before } = walk;
  walk.tree = undefined;
  walk.before = undefined;
  const where = `checkpoint ${stored.sequence}`;
  try {
    const record = verifyRecord(stored, runId, where);
    const { base, checkpointId } = record.header;
    if (base !== undefined && !isLinked(record, before)) {
      const expected = `the records from sequence ${base} on, which it builds on`;
      return { problem: "lost", expected, actual: "a gap" };
    }
    const grown = await codec.grow(tree, record, where);
    stateFrom(structuredClone(grown), record.header, where);
    walk.tree = grown;
    walk.before = record;
    return checkpointId === ""
      ? { problem: "corrupt", expected: "an id", actual: "none" }
      : undefined;
  } catch (error) {
    return faultOf(error);
  }
}
