import { BackendError } from "../../checkpoint/records/backend.js";
import { CheckpointCorruptionError, isWaymarkError, messageOf, withHint } from "../../errors.js";

/** The result codes of SQLite that the store handles. */
const CODES = {
  ERROR: 1,
  BUSY: 5,
  LOCKED: 6,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CANTOPEN: 14,
  PROTOCOL: 15,
  TOOBIG: 18,
  NOTADB: 26,
} as const;

const advice: ReadonlyMap<number, string> = new Map([
  [CODES.BUSY, "another process keeps the database locked: see who has a transaction open"],
  [CODES.READONLY, "the file or its folder is read-only: give this process the right to write"],
  [CODES.IOERR, "the disk reports an error: check it, and the file system"],
  [CODES.FULL, "the disk or its quota is full: make room, then resume the run"],
  [CODES.CANTOPEN, "check that the file and its folder can be read and written"],
]);

/** The primary result code of a driver's error; 0 if it has none. */
function resultCode(error: unknown): number {
  if (!(error instanceof Error)) return 0;
  // node:sqlite, libsql, bun:sqlite; better-sqlite3 has only the name.
  for (const name of ["errcode", "rawCode", "errno"]) {
    const code: unknown = Reflect.get(error, name);
    if (typeof code === "number" && code > 0) return code & 0xff;
  }
  const [, name = ""] = /^SQLITE_([A-Z]+)/.exec(String(Reflect.get(error, "code"))) ?? [];
  if (Object.hasOwn(CODES, name)) return CODES[name as keyof typeof CODES];
  // The message of libsql for a file that it can't open.
  const [, code = "0"] = /Unable to open connection.*: (\d+)"?\)?$/.exec(error.message) ?? [];
  return Number(code) & 0xff;
}

/** Whether another connection held a lock, so that a retry may succeed. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === CODES.BUSY || code === CODES.LOCKED || code === CODES.PROTOCOL;
}

/**
 * Whether the file is damaged or not a database.
 *
 * @param isReading - if true, a rejected statement also means damage, since the statements are known to be
 *   correct: for example if a table is missing, or a value is longer than any that was written.
 */
export function isDamage(error: unknown, isReading: boolean): boolean {
  const code = resultCode(error);
  if (code === CODES.CORRUPT || code === CODES.NOTADB) return true;
  return isReading && (code === CODES.ERROR || code === CODES.TOOBIG);
}

/** The error for a file that is not the database that was written. */
export function damaged(place: string, actual: string, cause?: unknown): CheckpointCorruptionError {
  const expected = "an intact waymark database";
  const message = `${place} is not ${expected}: ${actual}; it was left untouched`;
  return new CheckpointCorruptionError(message, { expected, actual, cause });
}

/**
 * A driver's error as the store throws it, unless the file is damaged.
 *
 * @param unsure - whether the write may have taken effect.
 */
export function failure(error: unknown, unsure: boolean): Error {
  if (isWaymarkError(error)) return error;
  const text = withHint(messageOf(error), advice.get(resultCode(error)));
  return new BackendError(text, { unsure, cause: error });
}
