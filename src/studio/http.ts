import { errorTable, isWaymarkError, messageOf } from "../errors.js";
import type { Refuse } from "../options.js";
import { typed } from "../report/shell.js";
import type { ApiError } from "./api.js";

export class HttpError extends Error {
  readonly status: number;
  readonly code: string;
  readonly help: string | undefined;

  constructor(status: number, code: string, message: string, help?: string) {
    super(message);
    this.name = "HttpError";
    this.status = status;
    this.code = code;
    this.help = help;
  }
}

export function badRequest(message: string): HttpError {
  return new HttpError(400, "BAD_REQUEST", message);
}

/** Throws the error of a check of what a request has. */
export const refuse: Refuse = (name, problem) => {
  throw badRequest(`${name} ${problem}`);
};

/** The error for a store without `history()`. */
export function noHistory(): HttpError {
  const help = "a store with history() lists its checkpoints";
  return new HttpError(501, "NO_HISTORY", "the store keeps no history", help);
}

/** The headers of every response: it is not cached, not framed, and not sniffed for another type. */
export const securityHeaders: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

export function json(value: unknown, status = 200): Response {
  const headers = { ...securityHeaders, "content-type": "application/json; charset=utf-8" };
  return new Response(JSON.stringify(value), { status, headers });
}

export function errorResponse(error: unknown): Response {
  const { status, ...rest } = explain(error);
  const answer = json({ error: rest } satisfies ApiError, status);
  if (status === 401) answer.headers.set("www-authenticate", "Bearer");
  return answer;
}

function explain(error: unknown): ApiError["error"] & { readonly status: number } {
  if (error instanceof HttpError) {
    const { status, code, message, help } = error;
    return { status, code, message, ...(help !== undefined && { help }) };
  }
  const message = messageOf(error);
  if (!isWaymarkError(error)) {
    const code = String(Reflect.get(Object(error), "code") ?? "INTERNAL");
    // The store's server can't be reached, which may be temporary.
    const isAway = /^(ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|57P)/.test(code);
    return { status: isAway ? 503 : 500, code, message };
  }
  const { code } = error;
  const { status, hint } = errorTable[code] ?? errorTable.NODE_FAILED;
  return {
    status,
    code,
    message,
    ...(hint !== undefined && !hint.ofRun && { help: `${typed(hint.verb)} ${hint.does}` }),
    ...(isWaymarkError(error, "SCHEMA") && { issues: error.issues }),
    ...(isWaymarkError(error, "CHECKPOINT_CORRUPT") && {
      expected: error.expected,
      actual: error.actual,
    }),
  };
}

/** The maximum size of a body, in bytes. */
const MAX_BODY = 1_048_576;
/** How long a body may take, in milliseconds. */
const BODY_TIMEOUT = 10_000;

/**
 * Reads the JSON object in a request's body; an empty one if there is no body.
 *
 * @throws HttpError if the body is too large, too slow, or not a JSON object.
 */
export async function bodyOf(request: Request): Promise<Readonly<Record<string, unknown>>> {
  const text = await bodyText(request);
  if (text === "") return {};
  if (!/^application\/json\b/i.test(request.headers.get("content-type") ?? "")) {
    throw new HttpError(415, "BAD_REQUEST", "the body's content-type must be application/json");
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw badRequest("the body must be JSON");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  throw badRequest("the body must be a JSON object");
}

async function bodyText({ body, headers }: Request): Promise<string> {
  const tooLarge = new HttpError(413, "TOO_LARGE", `the body must be ${MAX_BODY} bytes or less`);
  if (Number(headers.get("content-length")) > MAX_BODY) throw tooLarge;
  if (body === null) return "";
  const reader = body.getReader();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    reader.cancel().catch(() => {});
  }, BODY_TIMEOUT);
  try {
    const decoder = new TextDecoder();
    let text = "";
    let size = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.byteLength;
      if (size > MAX_BODY) throw tooLarge;
      text += decoder.decode(value, { stream: true });
    }
    if (isLate) throw new HttpError(408, "TIMEOUT", "the body did not arrive in time");
    return text + decoder.decode();
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => {});
  }
}
