import { isWaymarkError } from "../errors.js";

/** How the command ends. */
export const exit = {
  /** All went well. */
  ok: 0,
  /** Something is wrong with a run or a store. */
  problems: 1,
  /** The command was not used as it must be. */
  usage: 2,
  /** There is no such run, checkpoint, graph or file. */
  notFound: 3,
  /** Ctrl-C. */
  interrupted: 130,
} as const;

/** What each exit code means, for `--help` and the guide. */
export const exitCodes: readonly (readonly [code: number, meaning: string])[] = [
  [exit.ok, "all went well"],
  [exit.problems, "something is wrong with a run or a store, or a run failed"],
  [exit.usage, "the command was not used as it must be, or was not confirmed"],
  [exit.notFound, "there is no such run, checkpoint, graph or file"],
  [exit.interrupted, "interrupted by Ctrl-C; a run that was going on can be resumed"],
];

/** Ends the command with one line, and what to do about it. */
export class CommandError extends Error {
  readonly exitCode: number;
  /** What to do; `""` when the message says it. */
  readonly hint: string;

  constructor(exitCode: number, message: string, hint = "", options?: { cause?: unknown }) {
    super(message, options);
    this.name = "CommandError";
    this.exitCode = exitCode;
    this.hint = hint;
  }
}

/** The command was not used as it must be. */
export function usage(message: string, hint = ""): CommandError {
  return new CommandError(exit.usage, message, hint);
}

/** There is no such thing. */
export function missing(message: string, hint = ""): CommandError {
  return new CommandError(exit.notFound, message, hint);
}

/** Something is wrong with a run or a store. */
export function problem(message: string, hint = "", cause?: unknown): CommandError {
  return new CommandError(exit.problems, message, hint, { cause });
}

/** The exit code, the line to print and what to do, for anything that was thrown. */
export function explain(error: unknown): { code: number; message: string; hint: string } {
  if (error instanceof CommandError) {
    return { code: error.exitCode, message: error.message, hint: error.hint };
  }
  const message = error instanceof Error ? error.message : String(error);
  if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) {
    return { code: exit.notFound, message, hint: "waymark list shows the runs" };
  }
  if (isWaymarkError(error, "CHECKPOINT_CORRUPT")) {
    return { code: exit.problems, message, hint: "waymark validate shows what is wrong" };
  }
  if (isWaymarkError(error, "CHECKPOINT_CONFLICT")) {
    const hint = "another process works on this run; wait for it, or stop it";
    return { code: exit.problems, message, hint };
  }
  if (isWaymarkError(error, "CONFIG")) return { code: exit.usage, message, hint: "" };
  return { code: exit.problems, message, hint: "" };
}
