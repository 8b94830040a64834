import { messageOf, systemCode, withHint } from "../../errors.js";
import { answeredWithin, type FailureKind, type Failures, NO_CONNECTION } from "../server.js";

/** The server did nothing but may be ready soon: it is starting, failing over, or busy with a long command. */
const NOT_READY = new Set([
  "LOADING",
  "BUSY",
  "TRYAGAIN",
  "CLUSTERDOWN",
  "MASTERDOWN",
  "READONLY",
  "NOREPLICAS",
]);

/** No answer came within `statementTimeout`, or what a save waits for besides the answer did not happen. */
export class Unconfirmed extends Error {
  constructor(message: string) {
    super(message);
    this.name = "Unconfirmed";
  }
}

/**
 * Waits for a promise; throws `Unconfirmed` if it takes longer than `statementTimeout`.
 *
 * @param drop - called then to drop the connection.
 */
export function answered<T>(
  statementTimeout: number,
  promise: Promise<T>,
  drop: () => void,
): Promise<T> {
  const problem = `the server did not answer within statementTimeout (${statementTimeout} ms)`;
  return answeredWithin(statementTimeout, promise, () => {
    drop();
    throw new Unconfirmed(problem);
  });
}

/** The code that an error reply begins with, also inside a script; `""` if it is not an error reply. */
function replyCode(error: unknown): string {
  const message = messageOf(error);
  return /^(?:ERR Error running script.*?: -?)?([A-Z][A-Z\d]{2,}) /s.exec(message)?.[1] ?? "";
}

/** Whether the server does not know a script, for example after a restart; nothing was executed then. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && replyCode(error) === "NOSCRIPT";
}

function kindOf(error: unknown): FailureKind {
  if (error instanceof Unconfirmed) return "unknown";
  if (NO_CONNECTION.includes(systemCode(error))) return "unreached";
  const code = replyCode(error);
  if (NOT_READY.has(code)) return "unreached";
  // Anything else that is not a reply is a broken connection, whatever the client calls it.
  return code === "" ? "broken" : "refused";
}

const advice: Readonly<Record<string, string>> = {
  OOM: "the memory of the server is full: make room or raise maxmemory, then resume the run",
  READONLY: "the server is a replica: connect to the primary",
  MISCONF: "the server can't write to its disk: see its log, then resume the run",
  NOREPLICAS: "fewer replicas are connected than min-replicas-to-write",
  NOPERM: "the user lacks a right: it needs EVAL, EVALSHA, INFO and the keys of the prefix",
  NOAUTH: "the server asks for a password",
  WRONGPASS: "the user or the password is wrong",
  MOVED: "the server is part of a cluster: pass a cluster client",
};

function explain(error: unknown): string {
  return withHint(messageOf(error), advice[replyCode(error)]);
}

/** Interprets the errors of Redis and its clients. */
export const failures: Failures = { kindOf, explain };
