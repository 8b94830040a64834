import type { ApiError } from "../../api.js";
import { currentToken } from "./token.js";

/** How the page presents a failed request. */
export type FailureKind =
  | "unauthorized"
  | "forbidden"
  | "missing"
  | "conflict"
  | "corrupt"
  | "offline"
  | "failed";

/** A request that did not succeed. */
export class RequestFailure extends Error {
  readonly kind: FailureKind;
  readonly code: string;
  readonly help: string | undefined;
  readonly expected: string | undefined;
  readonly actual: string | undefined;
  readonly issues: readonly { readonly path: string; readonly message: string }[];

  constructor(kind: FailureKind, error: ApiError["error"]) {
    super(error.message);
    this.name = "RequestFailure";
    this.kind = kind;
    this.code = error.code;
    this.help = error.help;
    this.expected = error.expected;
    this.actual = error.actual;
    this.issues = error.issues ?? [];
  }
}

const kinds: Readonly<Record<number, FailureKind>> = {
  401: "unauthorized",
  403: "forbidden",
  404: "missing",
  409: "conflict",
};

/** The URL of an API path, wherever the studio is mounted. */
export function apiUrl(path: string): string {
  const base = location.pathname.replace(/[^/]*$/, "");
  return `${base}api/${path}`;
}

/** The headers of every request. */
export function headers(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const token = currentToken();
  return { ...(token !== "" && { authorization: `Bearer ${token}` }), ...more };
}

/** `GET api/<path>`. */
export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return request<T>(path, { method: "GET", ...(signal && { signal }) });
}

/** `POST api/<path>` with a JSON body. */
export function post<T>(path: string, body: unknown): Promise<T> {
  return request<T>(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  });
}

/** `DELETE api/<path>`. */
export function remove(path: string): Promise<unknown> {
  return request<unknown>(path, { method: "DELETE" });
}

/** The API path of a run, or of one of its routes. */
export function runPath(runId: string, rest = ""): string {
  return `runs/${encodeURIComponent(runId)}${rest === "" ? "" : `/${rest}`}`;
}

/** The failure that an error response describes. */
export async function failureOf(response: Response): Promise<RequestFailure> {
  let error: ApiError["error"] = { code: String(response.status), message: response.statusText };
  try {
    error = ((await response.json()) as ApiError).error ?? error;
  } catch {
    // A proxy may respond with something else.
  }
  const isCorrupt = response.status === 422 && error.code.startsWith("CHECKPOINT");
  const kind = isCorrupt ? "corrupt" : (kinds[response.status] ?? "failed");
  return new RequestFailure(kind, error);
}

/** The failure of a request without a response. */
export function unreachable(): RequestFailure {
  return new RequestFailure("offline", {
    code: "OFFLINE",
    message: "Is waymark studio still running? This page reconnects by itself.",
  });
}

async function request<T>(path: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(apiUrl(path), {
      ...init,
      cache: "no-store",
      credentials: "omit",
      headers: headers(init.headers as Record<string, string> | undefined),
    });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw unreachable();
  }
  if (!response.ok) throw await failureOf(response);
  const text = await response.text();
  return (text === "" ? undefined : JSON.parse(text)) as T;
}
