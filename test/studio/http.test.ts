import { afterEach, expect, test, vi } from "vitest";
import { GraphError, MemoryStore, SchemaError, WaymarkError } from "waymark";
import { opened, pausedRun, token } from "./harness.js";

afterEach(() => {
  vi.useRealTimers();
});

test.each([
  ["of any kind", new Error("odd"), 500, { code: "INTERNAL", message: "odd" }],
  [
    "of a server that is away",
    Object.assign(new Error("refused"), { code: "ECONNREFUSED" }),
    503,
    { code: "ECONNREFUSED" },
  ],
  ["of a graph", new GraphError("GRAPH_NO_NODES", "empty"), 409, { code: "GRAPH_NO_NODES" }],
  [
    "of a schema",
    new SchemaError("data", [{ message: "no text", path: "text" }]),
    422,
    { code: "SCHEMA", issues: [{ message: "no text", path: "text" }] },
  ],
  ["of a node", new WaymarkError("ROUTE_FAILED", "lost"), 500, { code: "ROUTE_FAILED" }],
])("an error %s has its status and its code", async (_, fault, status, error) => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  store.load = () => Promise.reject(fault);
  const { call } = opened({ store });
  const response = await call("GET", "/api/runs/monday/state");
  expect([response.status, await response.json()]).toMatchObject([status, { error }]);
});

function post(body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>): Request {
  const headers = { authorization: `Bearer ${token}` };
  const url = "http://localhost/api/runs/monday/fork";
  return new Request(url, { method: "POST", headers, body, duplex: "half" });
}

test("a body without a content-type is refused", async () => {
  const { handler } = opened({ store: new MemoryStore() });
  expect((await handler(post(new TextEncoder().encode("{}")))).status).toBe(415);
});

test("a body that does not end in time is given up", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { handler } = opened({ store: new MemoryStore() });
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode("{")),
    cancel: () => {
      isCancelled = true;
    },
  });
  const answered = handler(post(body));
  await vi.waitFor(() => expect(vi.getTimerCount()).toBeGreaterThan(0));
  await vi.advanceTimersByTimeAsync(10_000);
  const response = await answered;
  expect([response.status, await response.json()]).toMatchObject([
    408,
    { error: { code: "TIMEOUT" } },
  ]);
  expect(isCancelled).toBe(true);
});
