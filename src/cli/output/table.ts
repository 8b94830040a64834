import type { Look, Paint } from "./style.js";
import { cut, cutMiddle, plain, widthOf } from "./text.js";

/** A column of a table. */
export interface Column<T> {
  readonly head: string;
  readonly cell: (row: T) => string;
  readonly look?: (row: T) => Look | undefined;
  /** Align to the right, for numbers. */
  readonly right?: boolean;
  /** When it shrinks, keep its end: the end of an id can be pasted. */
  readonly keepEnd?: boolean;
  /** The width to which it may shrink; without it, it never shrinks. */
  readonly least?: number;
  /** Which column is dropped when none can shrink further, lowest first; without it, it stays. */
  readonly leave?: number;
}

const GAP = "  ";

/** A column and its width. */
interface Laid<T> {
  readonly column: Column<T>;
  width: number;
}

/**
 * Rows in columns. If they do not fit the width, columns with `least` shrink, the widest first; if that is not
 * enough, columns with `leave` are dropped.
 *
 * @param width - of the terminal; `Infinity` if there is none.
 */
export function table<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  width: number,
  paint: Paint,
): string {
  const laid: Laid<T>[] = columns.map((column) => {
    const cells = rows.map((row) => widthOf(plain(column.cell(row))));
    return { column, width: cells.reduce((a, b) => Math.max(a, b), widthOf(column.head)) };
  });
  leaveOut(laid, width);
  shrink(laid, width);
  const line = (part: (column: Column<T>) => [text: string, look?: Look | undefined]): string => {
    const parts = laid.map(({ column, width: room }) => {
      const [whole, look] = part(column);
      const text = column.keepEnd === true ? cutMiddle(whole, room) : cut(whole, room);
      const space = " ".repeat(room - widthOf(text));
      const shown = text === "" ? "" : paint(look, text);
      return column.right === true ? space + shown : shown + space;
    });
    return parts.join(GAP).trimEnd();
  };
  const head = line(({ head: text }) => [text, "dim"]);
  const body = rows.map((row) => line(({ cell, look }) => [plain(cell(row)), look?.(row)]));
  return [head, ...body].join("\n");
}

function leaveOut<T>(laid: Laid<T>[], width: number): void {
  const least = laid.map(({ column, width: wanted }) => Math.min(wanted, column.least ?? wanted));
  if (totalOf(least) <= width) return;
  const leaving = laid
    .filter(({ column }) => column.leave !== undefined)
    .sort((a, b) => (a.column.leave ?? 0) - (b.column.leave ?? 0));
  const [first] = leaving;
  if (first === undefined) return;
  laid.splice(laid.indexOf(first), 1);
  leaveOut(laid, width);
}

function totalOf(widths: readonly number[]): number {
  return widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length);
}

function shrink<T>(laid: readonly Laid<T>[], width: number): void {
  const total = totalOf(laid.map((one) => one.width));
  for (let over = total - width; over > 0; over--) {
    const able = laid.filter(({ column, width: now }) => now > (column.least ?? now));
    const [first, ...others] = able;
    if (first === undefined) return;
    others.reduce((a, b) => (b.width > a.width ? b : a), first).width--;
  }
}

/** A name and its value; a list is separated by commas. */
type Fact = readonly [
  name: string,
  value: string | readonly string[] | undefined,
  look?: Look | undefined,
];

/** Names and values, one below the other. A list that is wider than the terminal breaks between its items. */
export function facts(pairs: readonly Fact[], width: number, paint: Paint): string {
  const shown = pairs.flatMap(([name, value, look]) =>
    value?.length ? [{ name, value, look }] : [],
  );
  const indent = Math.max(0, ...shown.map(({ name }) => name.length));
  const room = width - indent - GAP.length;
  return shown
    .flatMap(({ name, value, look }) => {
      const lines = typeof value === "string" ? [plain(value)] : fill(value.map(plain), room);
      return lines.map((line, at) => {
        const head = (at === 0 ? name : "").padEnd(indent);
        return `${paint("dim", head)}${GAP}${paint(look, line)}`;
      });
    })
    .join("\n");
}

/** Items separated by commas, as many on a line as fit. */
function fill(items: readonly string[], room: number): string[] {
  const lines: string[] = [];
  for (const [at, item] of items.entries()) {
    const text = at < items.length - 1 ? `${item},` : item;
    const last = lines.at(-1);
    const longer = `${last} ${text}`;
    if (last === undefined || widthOf(longer) > room) lines.push(text);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}
