import { errorTable, isWaymarkError, messageOf, type WaymarkError } from "../errors.js";
import { typed } from "../report/shell.js";

/** The exit codes. */
export const exit = {
  /** Success. */
  ok: 0,
  /** Something is wrong with a run or a store. */
  problems: 1,
  /** The command was misused. */
  usage: 2,
  /** There is no such run, checkpoint, graph or file. */
  notFound: 3,
  /** Ctrl-C. */
  interrupted: 130,
} as const;

/** What each exit code means, for `--help` and the guide. */
export const exitCodes: readonly (readonly [code: number, meaning: string])[] = [
  [exit.ok, "success"],
  [exit.problems, "something is wrong with a run or a store, or a run failed"],
  [exit.usage, "the command was misused, or not confirmed"],
  [exit.notFound, "there is no such run, checkpoint, graph or file"],
  [exit.interrupted, "interrupted by Ctrl-C; a run that was under way can be resumed"],
];

/** Ends the command with a message and a hint. */
export class CommandError extends Error {
  readonly exitCode: number;
  /** What to do about it; `""` if the message says so. */
  readonly hint: string;

  constructor(exitCode: number, message: string, hint = "", options?: { cause?: unknown }) {
    super(message, options);
    this.name = "CommandError";
    this.exitCode = exitCode;
    this.hint = hint;
  }
}

/** The command was misused. */
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

/** What to do about an error of the system or a server, by its code. */
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
  ENOTDIR: "a store must be a folder; name another --store",
};

/**
 * The exit code, message and hint for anything that was thrown.
 *
 * @param verb - the command that threw it: a hint never recommends that one.
 */
export function explain(
  error: unknown,
  verb?: string,
): { code: number; message: string; hint: string } {
  const message = messageOf(error);
  if (error instanceof CommandError) return { code: error.exitCode, message, hint: error.hint };
  if (isWaymarkError(error)) {
    const { exit: code } = errorTable[error.code] ?? errorTable.NODE_FAILED;
    return { code, message, hint: hintOf(error, verb) };
  }
  return {
    code: exit.problems,
    message,
    hint: systemHint(error) ?? "--debug shows where it comes from",
  };
}

/** The hint for an error of the system or a server, even if a store wrapped it. */
function systemHint(error: unknown): string | undefined {
  const { code, cause } = Object(error) as { code?: unknown; cause?: unknown };
  if (typeof code === "string" && Object.hasOwn(hints, code)) return hints[code];
  return cause === undefined ? undefined : systemHint(cause);
}

/** The hint for one of our own errors; `""` if there is none. */
function hintOf(error: WaymarkError, verb: string | undefined): string {
  const runId = "runId" in error && typeof error.runId === "string" ? error.runId : undefined;
  if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) {
    const { step, checkpointId } = error;
    if ((step ?? checkpointId) !== undefined)
      return `${typed("history", runId)} shows those it has`;
  }
  const ofSystem = isWaymarkError(error, "STORE") ? systemHint(error) : undefined;
  if (ofSystem !== undefined) return ofSystem;
  const hint = errorTable[error.code]?.hint;
  if (hint === undefined || hint.verb === verb) return "";
  return `${typed(hint.verb, hint.ofRun ? runId : undefined)} ${hint.does}`;
}
