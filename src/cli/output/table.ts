import type { Look, Paint } from "./style.js";
import { cut, plain, widthOf } from "./text.js";

/** A column of a table. */
export interface Column<T> {
  readonly head: string;
  readonly cell: (row: T) => string;
  readonly look?: (row: T) => Look | undefined;
  /** Numbers stand to the right. */
  readonly right?: boolean;
  /** The fewest columns of the terminal it may shrink to; one without never shrinks. */
  readonly least?: number;
}

const GAP = "  ";

/**
 * Rows in columns. Where they do not fit the width, those that may shrink do, the widest first.
 *
 * @param width - of the terminal; `Infinity` where there is none.
 */
export function table<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  width: number,
  paint: Paint,
): string {
  const cells = rows.map((row) => columns.map((column) => plain(column.cell(row))));
  const widths = fitted(
    columns,
    columns.map((column, at) =>
      Math.max(widthOf(column.head), ...cells.map((row) => widthOf(row[at] ?? ""))),
    ),
    width,
  );
  const line = (texts: readonly string[], lookAt: (at: number) => Look | undefined): string =>
    columns
      .map((column, at) => {
        const text = cut(texts[at] ?? "", widths[at] ?? 0);
        const space = " ".repeat((widths[at] ?? 0) - widthOf(text));
        const isLast = at === columns.length - 1;
        const shown = paint(lookAt(at), text);
        return column.right === true ? space + shown : isLast ? shown : shown + space;
      })
      .join(GAP)
      .trimEnd();
  const head = line(
    columns.map((column) => column.head),
    () => "dim",
  );
  const body = rows.map((row, index) => line(cells[index] ?? [], (at) => columns[at]?.look?.(row)));
  return [head, ...body].join("\n");
}

function fitted<T>(
  columns: readonly Column<T>[],
  wanted: readonly number[],
  width: number,
): readonly number[] {
  const widths = [...wanted];
  const total = (): number =>
    widths.reduce((sum, one) => sum + one, 0) + GAP.length * (columns.length - 1);
  while (total() > width) {
    let widest = -1;
    for (const [at, one] of widths.entries()) {
      const canShrink = one > (columns[at]?.least ?? one);
      if (canShrink && one > (widths[widest] ?? 0)) widest = at;
    }
    if (widest < 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

/** Names and values, one below the other. */
export function facts(
  pairs: readonly (readonly [name: string, value: string | undefined, look?: Look | undefined])[],
  paint: Paint,
): string {
  const shown = pairs.filter(([, value]) => value !== undefined && value !== "");
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown
    .map(
      ([name, value, look]) =>
        `${paint("dim", name.padEnd(width))}  ${paint(look, plain(value ?? ""))}`,
    )
    .join("\n");
}
