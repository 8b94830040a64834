import type { Io, Output } from "../io.js";
import { type Paint, painter } from "./style.js";
import { type Column, facts, table } from "./table.js";
import { plain, toJson } from "./text.js";

/** Prints results to stdout and everything else to stderr. */
export class Printer {
  /** Whether to print JSON. */
  readonly json: boolean;
  readonly #io: Io;
  readonly #paint: Paint;
  readonly #paintNotes: Paint;

  constructor(io: Io, options: { readonly json: boolean; readonly color: boolean }) {
    this.json = options.json;
    this.#io = io;
    this.#paint = painter(io.stdout, io.env, options.color);
    this.#paintNotes = painter(io.stderr, io.env, options.color);
  }

  /** Styles text for stdout. */
  get paint(): Paint {
    return this.#paint;
  }

  /** The width of the terminal; `Infinity` if stdout is none. */
  get width(): number {
    return widthOf(this.#io.stdout);
  }

  /** Prints text unchanged. */
  text(text: string): void {
    this.#io.stdout.write(text.endsWith("\n") ? text : `${text}\n`);
  }

  /** Prints a value as one line of JSON. */
  line(value: unknown): void {
    this.text(toJson(value));
  }

  /** Prints a value as JSON with --json, otherwise as text. */
  result(value: unknown, text: () => string): void {
    if (this.json) this.line(value);
    else this.text(text());
  }

  table<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
    return table(columns, rows, this.width, this.#paint);
  }

  facts(pairs: Parameters<typeof facts>[0]): string {
    return facts(pairs, this.width, this.#paint);
  }

  /** Prints a note that is not part of the result. */
  note(text: string): void {
    this.#io.stderr.write(`${plain(text)}\n`);
  }

  /** Prints names and values that are not part of the result. */
  noteFacts(pairs: Parameters<typeof facts>[0]): void {
    this.#io.stderr.write(`${facts(pairs, widthOf(this.#io.stderr), this.#paintNotes)}\n`);
  }

  /** Like `note`, but on a new line, below a progress bar or the `^C` of the terminal. */
  noteBelow(text: string): void {
    if (this.#io.stderr.isTTY === true) this.#io.stderr.write("\n");
    this.note(text);
  }

  /** Prints what went wrong and what to do about it. */
  error(message: string, hint: string): void {
    const how = hint === "" ? "" : ` (${plain(hint)})`;
    this.#io.stderr.write(`${this.#paintNotes("red", "waymark:")} ${plain(message)}${how}\n`);
  }
}

function widthOf({ isTTY, columns }: Output): number {
  return isTTY === true ? (columns ?? 80) : Number.POSITIVE_INFINITY;
}
