import type { CodecRecord } from "../../codecs/pipeline.js";
import { string } from "../../options.js";
import { fields, type Listed } from "../../state/fields.js";
import {
  count,
  type Fields,
  fieldsOf,
  name,
  refuse,
  time,
  timeOrNone,
  type UserText,
  word,
} from "../../state/kinds.js";
import { metadata as metadataKind } from "../../state/metadata.js";
import { bareError, status } from "../../state/record.js";

/** The record format that this version writes; records of a higher one are rejected. */
export const FORMAT = 1;

/** The part of a record that is never encrypted. An absent field is empty; there is no error if the content is encrypted. */
export interface RecordHeader extends Listed<"header"> {
  /** The version of the format. */
  readonly format: number;
  /** The checkpoint its State was made from; `""` for the first of a run that was not forked. */
  readonly parentId: string;
  /** The run's newest checkpoint when it was saved; absent if that is `parentId`. */
  readonly previous?: string;
  /** For a patch: the sequence of the snapshot it builds on. Absent for a snapshot. */
  readonly base?: number;
  /** Whether it was saved inside a node that had not completed. */
  readonly unfinished?: true;
  /** The number of completed steps to keep from this record on; absent for all. */
  readonly keep?: number;
  /** The same for each phase. */
  readonly keepPerPhase?: number;
  /** The codecs applied to the content; absent if there are none. */
  readonly codec?: CodecRecord;
}

/** Which text of a header is the user's. */
export const headerText: UserText = {
  fields: Object.fromEntries(
    fields
      .filter(({ header }) => header)
      .map(({ as, brief, kind }) => [as, (brief?.kind ?? kind).userText]),
  ),
  each: "fixed",
  fixedKeys: true,
};

/**
 * Parses a header; `undefined` if the text is not one.
 *
 * @example
 * ```ts
 * import { parseHeader } from "waymark/stores";
 *
 * console.log(parseHeader('{"format":1}')); // undefined
 * ```
 */
export function parseHeader(text: string): RecordHeader | undefined {
  try {
    const header: unknown = JSON.parse(text);
    checkHeader(fieldsOf(header, "header"));
    return header as RecordHeader;
  } catch {
    return undefined;
  }
}

/** Written out, as it runs for each record of a list; a test compares it with the table of the fields. */
function checkHeader(given: Fields): void {
  const { previous, base, phase, nextNode, unfinished, metadata, error, keep } = given;
  count.read(given.format, "header", "format");
  // Whoever loads the record compares it with the id of the run.
  name.read(given.runId, "header", "runId");
  count.read(given.sequence, "header", "sequence");
  name.read(given.checkpointId, "header", "checkpointId");
  name.read(given.parentId, "header", "parentId");
  count.read(given.step, "header", "step");
  name.read(given.node, "header", "node");
  status.read(given.status, "header", "status");
  time.read(given.timestamp, "header", "timestamp");
  timeOrNone.read(given.savedAt, "header", "savedAt");
  time.read(given.startedAt, "header", "startedAt");
  word.read(given.reason, "header", "reason");
  name.read(given.graph, "header", "graph");
  if (previous !== undefined) name.read(previous, "header", "previous");
  if (base !== undefined) count.read(base, "header", "base");
  if (phase !== undefined) name.read(phase, "header", "phase");
  if (nextNode !== undefined) name.read(nextNode, "header", "nextNode");
  if (unfinished !== undefined && unfinished !== true) refuse(unfinished, "unfinished", "true");
  if (metadata !== undefined) metadataKind.read(metadata, "header", "metadata");
  if (error !== undefined) bareError.read(error, "header", "error");
  if (keep !== undefined) count.read(keep, "header", "keep");
  if (given.keepPerPhase !== undefined) count.read(given.keepPerPhase, "header", "keepPerPhase");
  if (given.codec !== undefined && !isCodecRecord(given.codec)) {
    refuse(given.codec, "codec", "codecs");
  }
}

/** The id of the record before this one; `""` for the first. */
export function previousOf({ previous, parentId }: RecordHeader): string {
  return previous ?? parentId;
}

function isCodecRecord(value: unknown): boolean {
  const { compress, bytes, encrypt, key, check, nonce, redacted } = fieldsOf(value, "codec");
  const isCompressed =
    (compress === "gzip" || compress === "brotli") && Number.isSafeInteger(bytes);
  const isEncrypted = encrypt === "aes-256-gcm" && [key, check, nonce].every(string.accepts);
  return (
    (isCompressed || areAbsent(compress, bytes)) &&
    (isEncrypted || areAbsent(encrypt, key, check, nonce)) &&
    (redacted === true || areAbsent(redacted))
  );
}

function areAbsent(...values: readonly unknown[]): boolean {
  return values.every((value) => value === undefined);
}
