import { types } from "node:util";

/*
 * A name may contain what a text in Postgres, or in some SQLite drivers, can't: U+0000 and lone surrogates.
 * They are escaped as in JSON, and so is the backslash, so that no two names become the same text.
 */

const UNSAFE = /[\0\\\p{Surrogate}]/u;
const EACH_UNSAFE = /[\0\\\p{Surrogate}]/gu;

/** A name as written in a column. */
export function toColumn(name: string): string {
  if (!UNSAFE.test(name)) return name;
  return name.replace(EACH_UNSAFE, (character) =>
    character === "\\" ? "\\\\" : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The text in a column that may have been read as bytes. */
export function textOf(column: unknown): string {
  if (types.isAnyArrayBuffer(column)) return Buffer.from(column).toString();
  if (!types.isUint8Array(column)) return String(column);
  return Buffer.from(column.buffer, column.byteOffset, column.byteLength).toString();
}

/** Selects a run's id with a prefix, because PGlite strips a leading U+FEFF. */
export function idColumn(column: string): string {
  return `'=' || ${column}`;
}

/** The run id in a row that was selected with {@link idColumn}, as `run_id`. */
export function runIdIn({ run_id }: { readonly run_id?: unknown }): string {
  return textOf(run_id).slice(1);
}

/** The name in a column. */
export function fromColumn(column: unknown): string {
  const text = textOf(column);
  if (!text.includes("\\")) return text;
  return text.replace(/\\(?:\\|u([\da-f]{4}))/g, (_, code: string | undefined) =>
    code === undefined ? "\\" : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
