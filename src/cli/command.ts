import type { Context } from "./context.js";
import type { Values } from "./values.js";

/** What a shell can complete an argument with. */
type Completes = "run" | "graph" | "file" | "store" | "shell";

/** An argument of a command. */
interface Argument {
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
  readonly run: (
    context: Context,
    values: Values,
    all: () => Promise<readonly Command[]>,
  ) => Promise<number | undefined>;
}

/** The options that every command takes. */
export const sharedOptions: readonly Option[] = [
  {
    flags: "--store <store>",
    text: "file:DIR, journal:DIR, pglite:DIR, postgres://…, or a name out of the config (default: WAYMARK_STORE, the config's store, or file:.waymark)",
  },
  {
    flags: "--config <file>",
    text: "the config (default: waymark.config.ts, .mts, .js, .mjs or .json)",
  },
  { flags: "--no-config", text: "read no config" },
  { flags: "--json", text: "print JSON" },
  { flags: "--no-color", text: "print no colours" },
  { flags: "--debug", text: "print the stack of an error" },
];

/** Skips the question before something that can't be undone. */
export const yes: Option = { flags: "--yes", text: "do not ask" };
