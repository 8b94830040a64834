import { now, sleep } from "../../clock.js";

/** The connection broke, perhaps after the statement was done. */
const BROKEN = new Set([
  "57P01", // the server shuts down
  "57P02", // it crashed
  "57P05", // the session was idle for too long
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
]);

/** There was no connection, so nothing was done. */
const UNREACHED = new Set([
  "57P03", // the server starts, or stops
  "53300", // it has too many connections
  "ECONNREFUSED",
  "ENOENT", // no socket: the server is not there
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EAI_AGAIN",
  "ENOTFOUND", // nor has anybody its name, perhaps not yet
]);

/** Another transaction was in the way; it was undone. */
const UNDONE = new Set(["40001", "40P01"]);

/** What pg says without a code. */
const BROKEN_MESSAGE = /^(Connection terminated|Client has encountered a connection error)/;
const UNREACHED_MESSAGE =
  /^(timeout exceeded when trying to connect|Connection terminated due to connection timeout)/;

const SQLSTATE = /^[\dA-Z]{5}$/;
const FIRST_WAIT = 20;
const LONGEST_WAIT = 500;

/** What an error means for the statement that met it. */
type Kind = "unreached" | "undone" | "broken" | "refused" | "unknown";

function kindOf(error: unknown): Kind {
  const code = codeOf(error);
  const message = messageOf(error);
  if (UNREACHED.has(code) || UNREACHED_MESSAGE.test(message)) return "unreached";
  if (UNDONE.has(code)) return "undone";
  if (BROKEN.has(code) || code.startsWith("08") || BROKEN_MESSAGE.test(message)) return "broken";
  return SQLSTATE.test(code) ? "refused" : "unknown";
}

/** Whether the server looked at the statement and said no. */
export function isRefused(error: unknown): boolean {
  return kindOf(error) === "refused";
}

/** Whether nobody knows if the statement took effect. */
export function isUnsure(error: unknown): boolean {
  const kind = kindOf(error);
  return kind === "broken" || kind === "unknown";
}

/**
 * Tries again for so many milliseconds what the connection, not the statement, is to blame for.
 *
 * @param onRetry - is told each time.
 */
export async function retrying<T>(
  retryFor: number,
  attempt: () => Promise<T>,
  onRetry: () => void,
): Promise<T> {
  const end = now() + retryFor;
  for (let tries = 0; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      const kind = kindOf(error);
      const wait = Math.min(FIRST_WAIT * 2 ** tries, LONGEST_WAIT) * (0.5 + Math.random() / 2);
      if (kind === "refused" || kind === "unknown" || now() + wait > end) throw error;
      onRetry();
      await sleep(wait);
    }
  }
}

const advice: Readonly<Record<string, string>> = {
  "53100": "the disk of the server is full: make room, then resume the run",
  "25006": "the server is read-only, perhaps a standby: connect to the primary",
  "57014": "the server cancelled the statement: raise statement_timeout, or see what it waits for",
  "55P03": "the server gave up waiting for a lock: raise lock_timeout",
  "53300": "the server has no connection left: raise max_connections, or make the pools smaller",
  "42501": "the role lacks a right: it needs CREATE on the database once, then its own schema",
};

/** An error in words, with what to do about it. */
export function explain(error: unknown): string {
  const message = messageOf(error);
  if (/^timeout exceeded when trying to connect/.test(message)) {
    return `${message}: all connections of the pool are in use, or the server does not answer; raise max or connectionTimeoutMillis of the pool`;
  }
  const hint = advice[codeOf(error)];
  return hint === undefined ? message : `${message} (${hint})`;
}

/** The code of a server's or a system's error; `""` where there is none. */
function codeOf(error: unknown): string {
  const code: unknown = error instanceof Error ? Reflect.get(error, "code") : undefined;
  return typeof code === "string" ? code : "";
}

/** An error's message. One that stands for several attempts to connect has none of its own. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") {
    return error.errors.map(messageOf).join("; ");
  }
  return error instanceof Error ? error.message : String(error);
}
