import { type Fields, fieldsOf } from "../state/fields.js";
import { type RunStatus, statuses } from "../state/record.js";
import type { CodecRecord } from "./pipeline.js";

/** What a document says of its checkpoint in clear, also when it is encrypted: ids and progress, no data. */
export interface DocumentHeader {
  /** The version of the document's layout. */
  readonly format: number;
  /** Names the run. */
  readonly runId: string;
  /** Its place in the run's history, from 1 up. */
  readonly sequence: number;
  /** How many nodes had completed. */
  readonly step: number;
  /** The last of them; `""` before the first. */
  readonly node: string;
  /** What the run was doing. */
  readonly status: RunStatus;
  /** When that node completed, ISO 8601. */
  readonly timestamp: string;
  /** The checkpoint's id. */
  readonly checkpointId: string;
  /** The checkpoint it was made from; `""` for the first of a run that was not forked. */
  readonly parentId: string;
  /** Why it was saved. */
  readonly reason: string;
  /** The name of the graph; `""` for a State that no graph has run. */
  readonly graph: string;
  /** What was done to the state; absent when it stands there in clear. */
  readonly codec?: CodecRecord;
}

/** The header in this text; `undefined` when it is none. */
export function parseHeader(text: string): DocumentHeader | undefined {
  try {
    const fields = fieldsOf(JSON.parse(text), "header");
    return isHeader(fields) ? fields : undefined;
  } catch {
    return undefined;
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isHeader(fields: Fields): fields is Fields & DocumentHeader {
  return (
    isCount(fields.format) &&
    isText(fields.runId) &&
    isCount(fields.sequence) &&
    isCount(fields.step) &&
    isText(fields.node) &&
    statuses.some((status) => status === fields.status) &&
    isText(fields.timestamp) &&
    isText(fields.checkpointId) &&
    isText(fields.parentId) &&
    isText(fields.reason) &&
    isText(fields.graph) &&
    (fields.codec === undefined || isRecord(fieldsOf(fields.codec, "header.codec")))
  );
}

function isRecord({ compress, bytes, encrypt, key, check, nonce, redacted }: Fields): boolean {
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
