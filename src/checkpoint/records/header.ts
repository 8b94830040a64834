import type { CodecRecord } from "../../codecs/pipeline.js";
import { fieldsOf } from "../../state/fields.js";
import { type Metadata, type RunStatus, statuses } from "../../state/record.js";

/** The record format that this version writes; records of a higher one are rejected. */
export const FORMAT = 1;

/** The part of a record that is never encrypted. An absent field is empty. */
export interface RecordHeader {
  /** The version of the format. */
  readonly format: number;
  /** Names the run. */
  readonly runId: string;
  /** Its position in the run's history, starting at 1. */
  readonly sequence: number;
  /** Its own id. */
  readonly checkpointId: string;
  /** The checkpoint its State was made from; `""` for the first of a run that was not forked. */
  readonly parentId: string;
  /** The run's newest checkpoint when it was saved; absent if that is `parentId`. */
  readonly previous?: string;
  /** For a patch: the sequence of the snapshot it builds on. Absent for a snapshot. */
  readonly base?: number;
  /** The number of nodes that had completed. */
  readonly step: number;
  /** The last of them; `""` before the first. */
  readonly node: string;
  /** The phase of that node. */
  readonly phase?: string;
  /** What the run was doing. */
  readonly status: RunStatus;
  /** When that node completed, ISO 8601. */
  readonly timestamp: string;
  /** When the record was saved, ISO 8601. */
  readonly savedAt: string;
  /** When the run began, ISO 8601. */
  readonly startedAt: string;
  /** Where a resume would continue. */
  readonly nextNode?: string;
  /** Why it was saved. */
  readonly reason: string;
  /** Whether it was saved inside a node that had not completed. */
  readonly unfinished?: true;
  /** The name of the graph; `""` for a State that no graph has run. */
  readonly graph: string;
  /** The run's metadata. */
  readonly metadata?: Metadata;
  /** The error that made the run fail; absent if the content is encrypted. */
  readonly error?: RecordError;
  /** The number of completed steps to keep from this record on; absent for all. */
  readonly keep?: number;
  /** The same for each phase. */
  readonly keepPerPhase?: number;
  /** The codecs applied to the content; absent if there are none. */
  readonly codec?: CodecRecord;
}

/** The error of a run, as listings show it. */
interface RecordError {
  /** The name of the error, such as `TypeError`. */
  readonly name: string;
  /** Its message. */
  readonly message: string;
  /** The node that threw it. */
  readonly node: string;
}

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
    const fields = fieldsOf(JSON.parse(text), "header");
    return isHeader(fields) ? (fields as unknown as RecordHeader) : undefined;
  } catch {
    return undefined;
  }
}

/** The id of the record before this one; `""` for the first. */
export function previousOf({ previous, parentId }: RecordHeader): string {
  return previous ?? parentId;
}

type Test = (value: unknown) => boolean;

const isText: Test = (value) => typeof value === "string";
const isCount: Test = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const optionally =
  (test: Test): Test =>
  (value) =>
    value === undefined || test(value);
const fits =
  (tests: Readonly<Record<string, Test>>): Test =>
  (value) => {
    const fields = fieldsOf(value, "header");
    for (const name in tests) if (tests[name]?.(fields[name]) !== true) return false;
    return true;
  };

const isError = fits({ name: isText, message: isText, node: isText });

/** The check of each field. */
const isHeader = fits({
  format: isCount,
  runId: isText,
  sequence: isCount,
  checkpointId: isText,
  parentId: isText,
  previous: optionally(isText),
  base: optionally(isCount),
  step: isCount,
  node: isText,
  phase: optionally(isText),
  status: (value) => statuses.some((status) => status === value),
  timestamp: isText,
  savedAt: isText,
  startedAt: isText,
  nextNode: optionally(isText),
  reason: isText,
  unfinished: optionally((value) => value === true),
  graph: isText,
  metadata: optionally((value) => Object.values(fieldsOf(value, "metadata")).every(isScalar)),
  error: optionally(isError),
  keep: optionally(isCount),
  keepPerPhase: optionally(isCount),
  codec: optionally((value) => isCodecRecord(value)),
});

function isScalar(value: unknown): boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}

function isCodecRecord(value: unknown): boolean {
  const { compress, bytes, encrypt, key, check, nonce, redacted } = fieldsOf(value, "codec");
  const isCompressed = (compress === "gzip" || compress === "brotli") && isCount(bytes);
  const isEncrypted = encrypt === "aes-256-gcm" && [key, check, nonce].every(isText);
  return (
    (isCompressed || areAbsent(compress, bytes)) &&
    (isEncrypted || areAbsent(encrypt, key, check, nonce)) &&
    (redacted === true || areAbsent(redacted))
  );
}

function areAbsent(...values: readonly unknown[]): boolean {
  return values.every((value) => value === undefined);
}
