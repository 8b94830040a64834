import { createHash } from "node:crypto";
import { newId } from "../../random.js";

/*
 * {root}/{run}/checkpoint_NNNN.json               a checkpoint; NNNN is its sequence
 * {root}/{run}/.checkpoint_NNNN.{owner}.{id}.tmp  a checkpoint being written
 * {root}/{run}/.checkpoint_NNNN.gone              empty; marks a sequence as used: see run-writer.ts
 * {root}/{run}/quarantine/checkpoint_NNNN.json    a corrupt checkpoint
 * {root}/.claims/                                 which process works on which run: see claims.ts
 * {root}/.graphs/{fingerprint}.json               the topology of a graph
 *
 * Any other file in these folders is foreign and left alone.
 */

/** A run's folder for corrupt checkpoints. */
export const QUARANTINE = "quarantine";

/** The folder for the topologies of graphs. */
export const GRAPHS = ".graphs";

/** The file of a graph's topology. */
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

/** A name in quarantine for a file of this sequence; `attempt` counts the names that were taken. */
export function quarantineName(sequence: number, attempt: number): string {
  return `checkpoint_${digits(sequence)}${attempt === 0 ? "" : `.${attempt}`}.json`;
}

/** The sequence in the name of a file in quarantine. */
export function quarantinedSequence(name: string): number | undefined {
  return sequenceOf(name.replace(/\.\d+\.json$/, ".json"));
}

/** A unique name for a checkpoint being written. */
export function temporaryName(sequence: number, owner: string): string {
  return `.checkpoint_${digits(sequence)}.${owner}.${newId()}.tmp`;
}

/** The owner in the name of a temporary file; `undefined` for any other name. */
export function ownerOf(name: string): string | undefined {
  return /^\.checkpoint_\d{4,16}\.([\w-]+)\.[\w.-]+\.tmp$/.exec(name)?.[1];
}

/** The file that marks a sequence as used. */
export function goneName(sequence: number): string {
  return `.checkpoint_${digits(sequence)}.gone`;
}

/** The sequence in the name of such a file; `undefined` for any other name. */
export function goneSequence(name: string): number | undefined {
  const sequence = Number(/^\.checkpoint_(\d{4,16})\.gone$/.exec(name)?.[1]);
  return goneName(sequence) === name ? sequence : undefined;
}

/** A number padded so that names up to 9999 sort like numbers. */
function digits(sequence: number): string {
  return String(sequence).padStart(4, "0");
}

/** Longer names are cut: many file systems allow 255 bytes, some only 143, and paths are limited too. */
const MAX_NAME = 100;
const CUT_NAME = 60;
const HASH_LENGTH = 32;
const MARK = "~";

/**
 * The name of a run's folder: the run id, with `%xx` for whatever is not safe on every file system. Capitals
 * are escaped too, because some file systems ignore case; a uuid has none.
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

/**
 * The run of a folder: its id, `"cut"` if the name was cut and only the checkpoints hold the id, `undefined`
 * if it is not a run's folder.
 */
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
