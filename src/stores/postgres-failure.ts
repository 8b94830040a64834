import { BackendError } from "../checkpoint/records/backend.js";
import { messageOf, systemCode, withHint } from "../errors.js";
import { type FailureKind, type Failures, NO_CONNECTION } from "./server.js";

/** The connection broke, perhaps after the statement was executed. */
const BROKEN = new Set([
  "57P01", // the server shuts down
  "57P02", // it crashed
  "57P05", // the session was idle for too long
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
]);

/** There was no connection, so nothing was executed. */
const UNREACHED = new Set([
  ...NO_CONNECTION,
  "57P03", // the server starts, or stops
  "53300", // it has too many connections
]);

/** The transaction conflicted with another and was rolled back. */
const UNDONE = new Set(["40001", "40P01"]);

/** Errors of pg that have no code. */
const BROKEN_MESSAGE = /^(Connection terminated|Client has encountered a connection error)/;
const UNREACHED_MESSAGE =
  /^(timeout exceeded when trying to connect|timeout expired|Connection terminated due to connection timeout)/;

const SQLSTATE = /^[\dA-Z]{5}$/;

function kindOf(error: unknown): FailureKind {
  const code = systemCode(error);
  const message = messageOf(error);
  if (UNREACHED.has(code) || UNREACHED_MESSAGE.test(message)) return "unreached";
  if (UNDONE.has(code)) return "undone";
  if (BROKEN.has(code) || code.startsWith("08") || BROKEN_MESSAGE.test(message)) return "broken";
  return SQLSTATE.test(code) ? "refused" : "unknown";
}

/** Whether the server rejected the statement itself. */
export function isRefused(error: unknown): boolean {
  return kindOf(error instanceof BackendError ? error.cause : error) === "refused";
}

const NO_ANSWER = "Query read timeout";

/** The error that pg throws if a statement gets no response within `query_timeout`. */
export function noAnswer(): Error {
  return new Error(NO_ANSWER);
}

/** Whether there was no response within `statementTimeout`. */
export function isTimeout(error: unknown): error is Error {
  return error instanceof Error && error.message === NO_ANSWER;
}

const POOLER =
  "a pooler gave the transaction another connection: set prepare: false in the options of the store";

const advice: Readonly<Record<string, string>> = {
  "26000": POOLER, // the statement was prepared on another connection
  "42P05": POOLER, // and here is one of the same name, which another client prepared
  "53100": "the disk of the server is full: make room, then resume the run",
  "25006": "the server is read-only, perhaps a standby: connect to the primary",
  "57014": "the server cancelled the statement: raise statement_timeout, or see what it waits for",
  "55P03": "the server gave up waiting for a lock: raise lock_timeout",
  "53300": "the server has no connection left: raise max_connections, or make the pools smaller",
  "42501": "the role lacks a right: it needs CREATE on the database once, then its own schema",
};

/** The message of an error, with what to do about it. */
function explain(error: unknown): string {
  const message = messageOf(error);
  if (UNREACHED_MESSAGE.test(message)) {
    return `${message}: all connections of the pool are in use, or the server does not answer; raise max or connectionTimeoutMillis of the pool`;
  }
  if (isTimeout(error)) {
    return "the server did not answer within statementTimeout: see what it waits for, or raise it";
  }
  return withHint(message, advice[systemCode(error)]);
}

/** How to read the errors of Postgres and its drivers. */
export const failures: Failures = { kindOf, explain };
