/*
 * A name may hold what no text of Postgres can: the character 0, and half of a surrogate pair. They are
 * written as JSON would, and so is the backslash, so that what stands for what is always clear.
 */

/** A name as it stands in a column. */
export function toColumn(name: string): string {
  return name.replace(/[\0\\\p{Surrogate}]/gu, (character) =>
    character === "\\" ? "\\\\" : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A name out of a column. */
export function fromColumn(column: unknown): string {
  const text = String(column);
  if (!text.includes("\\")) return text;
  return text.replace(/\\(?:\\|u([\da-f]{4}))/g, (_, code: string | undefined) =>
    code === undefined ? "\\" : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
