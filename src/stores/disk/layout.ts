import { createHash } from "node:crypto";
import { newId } from "../../random.js";

/*
 * {root}/{run}/checkpoint_NNNN.json               a checkpoint, NNNN its sequence
 * {root}/{run}/.checkpoint_NNNN.{owner}.{id}.tmp  one that is being written
 * {root}/{run}/.checkpoint_NNNN.gone              empty: there was one; see append.ts
 * {root}/{run}/quarantine/checkpoint_NNNN.json    one that is not what was written
 * {root}/.claims/                                 who works on which run; see claims.ts
 * {root}/.graphs/{fingerprint}.json               what a graph looks like
 *
 * Any other name in these folders belongs to somebody else and is left alone.
 */

/** The folder of a run for what is not what was written. */
export const QUARANTINE = "quarantine";

/** The folder for what graphs look like. */
export const GRAPHS = ".graphs";

/** The file for what a graph looks like. */
export function graphName(fingerprint: string): string {
  return `${folderName(fingerprint)}.json`;
}

/** The file of a checkpoint. */
export function checkpointName(sequence: number): string {
  return `checkpoint_${digits(sequence)}.json`;
}

/** The sequence in the name of a checkpoint's file; `undefined` for any other name. */
export function sequenceOf(name: string): number | undefined {
  const sequence = Number(/^checkpoint_(\d{4,16})\.json$/.exec(name)?.[1]);
  return checkpointName(sequence) === name && sequence > 0 ? sequence : undefined;
}

/** Where to put a file that has this sequence in its name; the first of these names that is free. */
export function quarantineName(sequence: number, attempt: number): string {
  return `checkpoint_${digits(sequence)}${attempt === 0 ? "" : `.${attempt}`}.json`;
}

/** The sequence in the name of a file in quarantine. */
export function quarantinedSequence(name: string): number | undefined {
  return sequenceOf(name.replace(/\.\d+\.json$/, ".json"));
}

/** A name for a checkpoint while it is written, which nobody else uses. */
export function temporaryName(sequence: number, owner: string): string {
  return `.checkpoint_${digits(sequence)}.${owner}.${newId()}.tmp`;
}

/** Who writes, or wrote, a temporary file; `undefined` for any other name. */
export function ownerOf(name: string): string | undefined {
  return /^\.checkpoint_\d{4,16}\.([\w-]+)\.[\w.-]+\.tmp$/.exec(name)?.[1];
}

/** The file that says of a sequence that it was used. */
export function goneName(sequence: number): string {
  return `.checkpoint_${digits(sequence)}.gone`;
}

/** The sequence in the name of such a file; `undefined` for any other name. */
export function goneSequence(name: string): number | undefined {
  const sequence = Number(/^\.checkpoint_(\d{4,16})\.gone$/.exec(name)?.[1]);
  return goneName(sequence) === name ? sequence : undefined;
}

/** A number in a name, so that names sort like their numbers up to 9999. */
function digits(sequence: number): string {
  return String(sequence).padStart(4, "0");
}

/** Longer names are cut: many file systems end at 255 bytes, some at 143, and a path has its limits too. */
const MAX_NAME = 100;
const CUT_NAME = 60;
const HASH_LENGTH = 32;
const MARK = "~";

/**
 * The name of a run's folder: the id itself where that is safe everywhere, else with `%xx` in it.
 * Capitals are written so too, for file systems that don't tell them apart; a uuid has none.
 */
export function folderName(runId: string): string {
  const plain = Buffer.from(runId).toString("latin1");
  const name = plain
    .replace(/[^a-z0-9_.-]/g, escaped)
    .replace(/^\.|\.$/g, escaped)
    .replace(/^(?=(con|prn|aux|nul|com\d|lpt\d)(\.|$))./, escaped);
  if (name.length <= MAX_NAME) return name;
  const cut = name.slice(0, CUT_NAME).replace(/%[\da-f]?$/, "");
  return `${cut}${MARK}${createHash("sha256").update(runId).digest("hex").slice(0, HASH_LENGTH)}`;
}

/** The run of a folder: its id, `"cut"` when only its checkpoints know, `undefined` when it is no run's. */
export function runOf(folder: string): { runId: string } | "cut" | undefined {
  const cut = /^[a-z0-9_.%-]{1,60}~[\da-f]{32}$/;
  if (cut.test(folder)) return "cut";
  const plain = folder.replace(/%([\da-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  const runId = Buffer.from(plain, "latin1").toString();
  return runId !== "" && folderName(runId) === folder ? { runId } : undefined;
}

function escaped(character: string): string {
  return `%${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}
