import { types } from "node:util";

/*
 * A name may hold what a text of Postgres, or of some SQLite drivers, can't: the character 0, and half
 * of a surrogate pair. They are written as JSON would, and so is the backslash, so that no two names
 * are the same text.
 */

const UNSAFE = /[\0\\\p{Surrogate}]/u;
const EACH_UNSAFE = /[\0\\\p{Surrogate}]/gu;

/** A name as it stands in a column. */
export function toColumn(name: string): string {
  if (!UNSAFE.test(name)) return name;
  return name.replace(EACH_UNSAFE, (character) =>
    character === "\\" ? "\\\\" : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A text out of a column that may have been read as bytes. */
export function textOf(column: unknown): string {
  if (types.isAnyArrayBuffer(column)) return Buffer.from(column).toString();
  if (!types.isUint8Array(column)) return String(column);
  return Buffer.from(column.buffer, column.byteOffset, column.byteLength).toString();
}

/** The id of a run, to select so that no driver cuts anything off: PGlite drops a leading U+FEFF. */
export function idColumn(column: string): string {
  return `'=' || ${column}`;
}

/** The id of a run that was selected so, as `run_id`. */
export function runIdIn({ run_id }: { readonly run_id?: unknown }): string {
  return textOf(run_id).slice(1);
}

/** A name out of a column. */
export function fromColumn(column: unknown): string {
  const text = textOf(column);
  if (!text.includes("\\")) return text;
  return text.replace(/\\(?:\\|u([\da-f]{4}))/g, (_, code: string | undefined) =>
    code === undefined ? "\\" : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
