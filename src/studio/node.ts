import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import { inBackground, unlessLate } from "../clock.js";

/** A listener for `node:http`, Express or Connect. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void;

/** How long clients may take, in milliseconds. */
const limits = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  keepAliveTimeout: 5000,
  /** To read a response. */
  drainTimeout: 30_000,
  connectionsCheckingInterval: 2000,
};

/**
 * Turns a fetch handler into a listener for `node:http`, Express or Connect. A client that does not read its response is
 * disconnected.
 *
 * @example
 * ```ts
 * import { createServer } from "node:http";
 * import { MemoryStore } from "waymark";
 * import { nodeListener, studio } from "waymark/studio";
 *
 * const handler = studio({ store: new MemoryStore() });
 * const server = createServer(nodeListener(handler)).listen(0, "127.0.0.1");
 * server.close();
 * await handler.close();
 * ```
 */
export function nodeListener(handler: FetchHandler): NodeListener {
  return listenerOf(handler, limits.drainTimeout);
}

/** Answers requests, as `studio` does. */
export type FetchHandler = (request: Request) => Promise<Response>;

function listenerOf(handler: FetchHandler, drainTimeout: number): NodeListener {
  return (incoming, outgoing) => {
    answer(handler, incoming, outgoing, drainTimeout).catch(() => outgoing.destroy());
  };
}

async function answer(
  handler: FetchHandler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  drainTimeout: number,
): Promise<void> {
  const closed = new AbortController();
  outgoing.once("close", () => closed.abort());
  const response = await handler(requestOf(incoming, closed.signal));
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  // The unread rest of a body would be parsed as the next request.
  if (!incoming.complete) outgoing.shouldKeepAlive = false;
  if (response.body !== null) await send(response.body, outgoing, closed.signal, drainTimeout);
  outgoing.end();
}

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = "GET", headers, socket } = incoming;
  // Express removes the mount path from `url`.
  const original: unknown = Reflect.get(incoming, "originalUrl");
  const path = typeof original === "string" ? original : (incoming.url ?? "/");
  const fields = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(":")) for (const one of [value ?? []].flat()) fields.append(name, one);
  }
  const scheme = "encrypted" in socket ? "https" : "http";
  // The handler checks the Host header; here it must not end up in the URL.
  const url = new URL(`${scheme}://localhost${path.startsWith("/") ? path : "/"}`);
  if (headers.host === undefined) fields.set("host", String(headers[":authority"] ?? "unknown"));
  const hasBody = method !== "GET" && method !== "HEAD";
  const body = hasBody ? (Readable.toWeb(incoming) as NodeStream<Uint8Array>) : undefined;
  return new Request(url, {
    method,
    headers: fields,
    signal,
    ...(body !== undefined && { body: body as ReadableStream<Uint8Array>, duplex: "half" }),
  });
}

async function send(
  body: ReadableStream<Uint8Array>,
  outgoing: ServerResponse,
  signal: AbortSignal,
  drainTimeout: number,
): Promise<void> {
  const reader = body.getReader();
  signal.addEventListener("abort", () => void reader.cancel().catch(() => {}), { once: true });
  for (;;) {
    const { done, value } = await reader.read();
    if (done || signal.aborted) return;
    if (!outgoing.write(value) && !(await isDrained(outgoing, drainTimeout))) {
      outgoing.destroy();
      return;
    }
  }
}

/** Whether the client has read the pending data in time. */
async function isDrained(outgoing: ServerResponse, drainTimeout: number): Promise<boolean> {
  const ending = new AbortController();
  const { signal } = ending;
  try {
    const first = Promise.race([
      once(outgoing, "drain", { signal }).then(() => true),
      once(outgoing, "close", { signal }).then(() => false),
    ]);
    return await unlessLate(first, drainTimeout, () => false, inBackground);
  } finally {
    ending.abort();
  }
}

/** A server for a handler, with timeouts for slow and idle clients. */
export function serverOf(handler: FetchHandler, given: typeof limits = limits): Server {
  const { drainTimeout, ...options } = given;
  const listener = listenerOf(handler, drainTimeout);
  const server = createServer({ ...options, maxHeaderSize: 16_384 }, listener);
  server.maxConnections = 200;
  return server;
}
