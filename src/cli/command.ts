import type { Context } from "./context.js";
import { usage } from "./exit.js";

/** What a shell can complete an argument with. */
export type Completes = "run" | "graph" | "file" | "store" | "shell";

/** An argument of a command. */
export interface Argument {
  readonly name: string;
  readonly text: string;
  readonly optional?: boolean;
  /** Takes all that is left. */
  readonly many?: boolean;
  readonly completes?: Completes;
}

/** An option of a command. */
export interface Option {
  /** As it is written: `--at <checkpoint>`. */
  readonly flags: string;
  readonly text: string;
  /** It may be given several times. */
  readonly many?: boolean;
  readonly choices?: readonly string[];
}

/** A command, as `--help`, the guide and the completion scripts tell of it. */
export interface Command {
  readonly name: string;
  /** One line. */
  readonly summary: string;
  /** What else there is to know. */
  readonly details?: string;
  readonly arguments?: readonly Argument[];
  readonly options?: readonly Option[];
  readonly examples: readonly string[];
  /** Does it; gives the exit code, 0 where it gives none. */
  readonly run: (context: Context, values: Values) => Promise<number | undefined>;
}

/** The options that every command takes. */
export const sharedOptions: readonly Option[] = [
  {
    flags: "--store <store>",
    text: "file:DIR, journal:DIR, pglite:DIR, postgres://…, or a name out of the config (default: WAYMARK_STORE, the config's store, or file:.waymark)",
  },
  { flags: "--config <file>", text: "the config (default: waymark.config.ts, .js, .mjs or .json)" },
  { flags: "--no-config", text: "read no config" },
  { flags: "--json", text: "print JSON" },
  { flags: "--no-color", text: "print no colours" },
  { flags: "--debug", text: "print the stack of an error" },
];

/** Skips the question before something that can't be undone. */
export const yes: Option = { flags: "--yes", text: "do not ask" };

/** What a command was called with. */
export class Values {
  /** The arguments, in their order. */
  readonly arguments: readonly string[];
  readonly #options: Readonly<Record<string, unknown>>;

  constructor(args: readonly unknown[], options: Readonly<Record<string, unknown>>) {
    this.arguments = args.flat().flatMap((value) => (typeof value === "string" ? [value] : []));
    this.#options = options;
  }

  /** One argument; `""` when it was not given. */
  argument(at: number): string {
    return this.arguments[at] ?? "";
  }

  /** The value of an option. */
  text(name: string): string | undefined {
    const value = this.#options[name];
    return typeof value === "string" ? value : undefined;
  }

  /** The values of an option that may be given several times. */
  texts(name: string): readonly string[] {
    const value = this.#options[name];
    return Array.isArray(value) ? value.map(String) : [];
  }

  /** Whether an option was given. */
  flag(name: string): boolean {
    return this.#options[name] === true;
  }

  /** Whether an option was taken back by its `--no-` form. */
  denied(name: string): boolean {
    return this.#options[name] === false;
  }

  /** The whole number that an option has. */
  count(name: string, least: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isSafeInteger(value) && value >= least) return value;
    throw usage(`--${dashed(name)} wants a whole number from ${least} up, got "${text}"`);
  }
}

function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
