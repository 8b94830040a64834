import { isWaymarkError } from "../errors.js";
import { typed } from "./output/shell.js";

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

/** What to do about an error that a store, the disk or a server has thrown, by its code. */
const hints: Readonly<Record<string, string>> = {
  ECONNREFUSED: "no server answers there; start it, or name another --store",
  ENOTFOUND: "there is no such host; check --store",
  EAI_AGAIN: "the host can't be looked up now; check --store and the network",
  ETIMEDOUT: "no answer came; check --store and the network",
  "28P01": "check user and password in --store",
  "28000": "check the user in --store",
  "3D000": "create the database first, or name another in --store",
  "42501": "this user needs rights on the schema waymark",
  EACCES: "this user needs rights there; waymark doctor checks them",
  EPERM: "this user needs rights there; waymark doctor checks them",
  EROFS: "the disk can only be read; name another --store",
  ENOSPC: "the disk is full; make room, or name another --store",
  ENOTDIR: "a store wants a folder; name another --store",
};

/** The exit code, the line to print and what to do, for anything that was thrown. */
export function explain(error: unknown): { code: number; message: string; hint: string } {
  const message = messageOf(error);
  if (error instanceof CommandError) return { code: error.exitCode, message, hint: error.hint };
  if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) {
    const isRunThere = / has no checkpoint (at|with) /.test(message);
    const hint = isRunThere
      ? `${typed("history", error.runId)} shows those it has`
      : "waymark list shows the runs";
    return { code: exit.notFound, message, hint };
  }
  if (isWaymarkError(error, "CHECKPOINT_CORRUPT")) {
    return { code: exit.problems, message, hint: "waymark validate shows what is wrong" };
  }
  if (isWaymarkError(error, "CHECKPOINT_CONFLICT")) {
    const hint = "another process works on this run; wait for it, or stop it";
    return { code: exit.problems, message, hint };
  }
  if (isWaymarkError(error, "CHECKPOINT_SAVE")) {
    return { code: exit.problems, message, hint: "waymark doctor checks the store" };
  }
  if (isWaymarkError(error, "CONFIG")) return { code: exit.usage, message, hint: "" };
  const code = String(Reflect.get(Object(error), "code"));
  const hint = hints[code] ?? (isWaymarkError(error) ? "" : "--debug shows where it comes from");
  return { code: exit.problems, message, hint };
}

/** What an error says, whatever was thrown. */
function messageOf(error: unknown): string {
  // Of several addresses that could not be reached each has its error, and all of them no message.
  if (error instanceof AggregateError && error.message === "") {
    return error.errors.map(messageOf).join("; ");
  }
  const { message, name } = Object(error) as { message?: unknown; name?: unknown };
  if (typeof error !== "object" || error === null) return String(error);
  return typeof message === "string" && message !== "" ? message : String(name ?? error);
}
