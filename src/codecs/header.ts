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

type Test = (value: unknown) => boolean;

const isText: Test = (value) => typeof value === "string";
const isCount: Test = (value) => Number.isSafeInteger(value) && Number(value) >= 0;

const headerTests: Readonly<Record<Exclude<keyof DocumentHeader, "codec">, Test>> = {
  format: isCount,
  runId: isText,
  sequence: isCount,
  step: isCount,
  node: isText,
  status: (value) => statuses.some((status) => status === value),
  timestamp: isText,
  checkpointId: isText,
  parentId: isText,
  reason: isText,
  graph: isText,
};

const recordTests: Readonly<Record<keyof CodecRecord, Test>> = {
  compress: (value) => value === "gzip" || value === "brotli",
  bytes: isCount,
  encrypt: (value) => value === "aes-256-gcm",
  key: isText,
  check: isText,
  nonce: isText,
  redacted: (value) => value === true,
};

/** The header in this text; `undefined` when it is none. */
export function parseHeader(text: string): DocumentHeader | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isHeader(value) ? value : undefined;
}

function isHeader(value: unknown): value is DocumentHeader {
  if (typeof value !== "object" || value === null) return false;
  const whole = Object.entries(headerTests).every(
    ([key, test]) => Object.hasOwn(value, key) && test(Reflect.get(value, key)),
  );
  return whole && (!Object.hasOwn(value, "codec") || isRecord(Reflect.get(value, "codec")));
}

function isRecord(value: unknown): value is CodecRecord {
  if (typeof value !== "object" || value === null) return false;
  const has = (key: string): boolean => Object.hasOwn(value, key);
  return (
    Object.entries(recordTests).every(
      ([key, test]) => !has(key) || test(Reflect.get(value, key)),
    ) &&
    has("compress") === has("bytes") &&
    ["key", "check", "nonce"].every((key) => has(key) === has("encrypt"))
  );
}
