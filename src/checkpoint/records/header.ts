import type { CodecRecord } from "../../codecs/pipeline.js";
import { SerializationError } from "../../errors.js";
import { check, string } from "../../options.js";
import { headerKinds, type Listed } from "../../state/fields.js";
import {
  type AnyKind,
  checkFields,
  count,
  fieldsOf,
  inOneShape,
  type KindsOf,
  name,
  optional,
  scalar,
  type UserText,
  userTextsOf,
} from "../../state/kinds.js";

/** The record format that this version writes; records of a higher one are rejected. */
export const FORMAT = 1;

/** The error for a record, or a document, of a higher format. */
export function newerFormat(where: string, format: number): SerializationError {
  const problem = `has format ${format}: a newer waymark wrote it, this one reads up to ${FORMAT}`;
  return new SerializationError(where, problem);
}

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

/** The fields of a header besides those of the State. */
type Own = Omit<RecordHeader, keyof Listed<"header">>;

const own: KindsOf<Own> = {
  format: count,
  parentId: name,
  previous: optional(name),
  base: optional(count),
  unfinished: optional(
    scalar<true>(
      "fixed",
      check("true", (value) => value === true),
    ),
  ),
  keep: optional(count),
  keepPerPhase: optional(count),
  codec: optional(scalar<CodecRecord>("fixed", check("codecs", isCodecRecord))),
};
// Whoever loads the record compares its run with the one that was asked for.
const kinds: Readonly<Record<string, AnyKind>> = { ...own, ...headerKinds, runId: name };
const checked = Object.entries(kinds).map(([key, kind]) => [key, inOneShape(kind)] as const);

/** Which text of a header is the user's. */
export const headerText: UserText = { fields: userTextsOf(kinds), each: "fixed", fixedKeys: true };

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
    checkFields(checked, fieldsOf(header, "header"), "header");
    return header as RecordHeader;
  } catch {
    return undefined;
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
