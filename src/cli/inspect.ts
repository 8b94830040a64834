import { readFile } from "node:fs/promises";
import { faultOf, verifyOf } from "../checkpoint/any-store.js";
import type { CheckpointStore, Finding as StoreFinding } from "../checkpoint/store.js";
import type { CodecOptions } from "../codecs/pipeline.js";
import { messageOf } from "../errors.js";
import { missing } from "./exit.js";
import type { OpenStore } from "./store/open.js";

/** Something that `validate` found. */
export interface Finding extends Omit<StoreFinding, "problem"> {
  /** A problem needs repair; a note does not. */
  readonly level: "problem" | "note";
  /** `orphan`: a fork whose origin is gone. The others are those of a store's `verify`. */
  readonly problem: StoreFinding["problem"] | "orphan";
}

/** What was found in a store. */
export interface Inspection {
  /** How many runs and checkpoints were checked. */
  readonly runs: number;
  readonly checkpoints: number;
  readonly findings: readonly Finding[];
}

/** What `repair` can set aside. */
export const repairable: ReadonlySet<Finding["problem"]> = new Set(["corrupt", "lost"]);

const notes: ReadonlySet<Finding["problem"]> = new Set(["quarantined", "leftover", "orphan"]);

/**
 * Checks every checkpoint of a run, or of all runs, and changes nothing.
 *
 * @param opened - a store opened for reading.
 */
export async function inspect({ store }: OpenStore, runId?: string): Promise<Inspection> {
  const all = await store.list();
  const runIds = runId === undefined ? all : [runId];
  const findings: Finding[] = [];
  for await (const finding of verifyOf(store, runId)) findings.push(withLevel(finding));
  let checkpoints = 0;
  for (const id of runIds) {
    checkpoints += await countOf(store, id);
    const origin = await originOf(store, id);
    if (origin === undefined || all.includes(origin)) continue;
    const expected = `run ${origin}, which it was forked from`;
    findings.push(
      withLevel({ runId: id, sequence: 0, problem: "orphan", expected, actual: "nothing" }),
    );
  }
  return { runs: runIds.length, checkpoints, findings };
}

/**
 * Checks one checkpoint file, wherever it is.
 *
 * @throws CommandError if there is no such file.
 */
export async function inspectFile(
  file: string,
  options: CodecOptions | undefined,
): Promise<Inspection> {
  const bytes = await readFile(file).catch((error: unknown) => {
    throw missing(`${file} can't be read: ${messageOf(error)}`);
  });
  const [{ fromDocument, headerOf }, { RecordCodec, stateFrom, verifyRecord }] = await Promise.all([
    import("../checkpoint/records/document.js"),
    import("../checkpoint/records/codec.js"),
  ]);
  const { runId = "", sequence = 0 } = headerOf(bytes) ?? {};
  const findings: Finding[] = [];
  try {
    const record = verifyRecord(fromDocument(bytes, file, sequence), runId, file);
    const tree = await new RecordCodec(options, 1).grow(undefined, record, file);
    stateFrom(tree, record.header, file);
  } catch (error) {
    findings.push(withLevel({ runId, sequence, ...faultOf(error) }));
  }
  return { runs: 1, checkpoints: 1, findings };
}

/** A finding in words. */
export function findingText({ expected, actual }: Finding): string {
  return `expected ${expected}; found ${actual}`;
}

function withLevel(finding: Omit<Finding, "level">): Finding {
  return { level: notes.has(finding.problem) ? "note" : "problem", ...finding };
}

async function countOf(store: CheckpointStore, runId: string): Promise<number> {
  try {
    return (await store.history?.(runId))?.length ?? 1;
  } catch {
    // The findings say what is wrong with it.
    return 0;
  }
}

async function originOf(store: CheckpointStore, runId: string): Promise<string | undefined> {
  try {
    return (await store.load(runId)).parent?.runId;
  } catch {
    // The findings say what is wrong with it.
    return undefined;
  }
}
