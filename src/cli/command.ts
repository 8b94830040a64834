import { addressForms } from "../stores/address.js";
import type { Context } from "./context.js";
import type { Values } from "./values.js";

/** What a shell can complete an argument with. */
type Completes = "run" | "graph" | "file" | "store" | "shell";

/** An argument of a command. */
interface Argument {
  readonly name: string;
  readonly text: string;
  readonly optional?: boolean;
  /** Takes all remaining arguments. */
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

/** A command, as `--help`, the guide and the completion scripts describe it. */
export interface Command {
  readonly name: string;
  /** One line. */
  readonly summary: string;
  /** Further sentences. */
  readonly details?: string;
  readonly arguments?: readonly Argument[];
  readonly options?: readonly Option[];
  readonly examples: readonly string[];
  /** Runs the command and returns the exit code; `undefined` means 0. */
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
    text: `${addressForms}, or a name in the config (default: WAYMARK_STORE, the config's store, or file:.waymark)`,
  },
  {
    flags: "--config <file>",
    text: "the config (default: waymark.config.ts, .mts, .js, .mjs or .json)",
  },
  { flags: "--no-config", text: "read no config" },
  {
    flags: "--actor <name>",
    text: "who calls the command, for audit events (default: the login name)",
  },
  { flags: "--json", text: "print JSON" },
  { flags: "--no-color", text: "print no colours" },
  { flags: "--debug", text: "print the stack of an error" },
];

/** The argument that names a run. */
export const run: Argument = {
  name: "run",
  text: "the run's id, its beginning or end, or a checkpoint's id",
  completes: "run",
};

/** What names a checkpoint of a run. */
export const CHECKPOINT = "a step, a checkpoint's id, a node or a phase";

/** Names one checkpoint of the run. */
export const at: Option = {
  flags: "--at <checkpoint>",
  text: `${CHECKPOINT}; the newest by default`,
};

/** Where the event log is. */
export const log: Option = {
  flags: "--log <place>",
  text: "the event log: a folder, or a file that ends in .jsonl",
};

/** Names the graph that works on the run. */
export const graph: Option = {
  flags: "--graph <graph>",
  text: "another name in the config, or a module: ./graph.ts#graph",
};

/** Skips the question before something that can't be undone. */
export const yes: Option = { flags: "--yes", text: "do not ask" };
