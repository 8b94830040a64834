import type { Io, Output } from "../io.js";
import { type Paint, painter } from "./style.js";
import { type Column, facts, table } from "./table.js";
import { plain, toJson } from "./text.js";

/** Prints what a command has found: results to stdout, all else to stderr. */
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

  /** Gives text for stdout a look. */
  get paint(): Paint {
    return this.#paint;
  }

  /** How wide what is printed may be. */
  get width(): number {
    return widthOf(this.#io.stdout);
  }

  /** Text, as it is. */
  text(text: string): void {
    this.#io.stdout.write(text.endsWith("\n") ? text : `${text}\n`);
  }

  /** A value on one line of JSON. */
  line(value: unknown): void {
    this.text(toJson(value));
  }

  /** A value as JSON when that is asked for, else as text. */
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

  /** Something to know that is no result. */
  note(text: string): void {
    this.#io.stderr.write(`${plain(text)}\n`);
  }

  /** Names and values that are no result. */
  noteFacts(pairs: Parameters<typeof facts>[0]): void {
    this.#io.stderr.write(`${facts(pairs, widthOf(this.#io.stderr), this.#paintNotes)}\n`);
  }

  /** The same as `note`, below what a terminal has on its last line: the bar of a run, and what Ctrl-C leaves there. */
  noteBelow(text: string): void {
    if (this.#io.stderr.isTTY === true) this.#io.stderr.write("\n");
    this.note(text);
  }

  /** What went wrong, and what to do. */
  error(message: string, hint: string): void {
    const how = hint === "" ? "" : ` (${plain(hint)})`;
    this.#io.stderr.write(`${this.#paintNotes("red", "waymark:")} ${plain(message)}${how}\n`);
  }
}

function widthOf({ isTTY, columns }: Output): number {
  return isTTY === true ? (columns ?? 80) : Number.POSITIVE_INFINITY;
}
