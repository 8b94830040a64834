import { expect, test } from "vitest";
import { MemoryStore, State } from "waymark";
import { studio } from "waymark/studio";
import { articleGraph, opened, pausedRun, token } from "./harness.js";

const apiRoutes = [
  ...["session", "runs", "runs/monday", "runs/monday/history", "runs/monday/state"],
  ...["runs/monday/diff?from=1", "runs/monday/log", "events", "events?run=monday"],
  ...["inbox", "figures", "openapi.json", "nothing"],
];

test("every route of the API needs the token, whatever the method", async () => {
  const handler = studio({ store: new MemoryStore(), token });
  const headers = [
    {},
    { authorization: "Bearer" },
    { authorization: "Bearer wrong-token-of-some-length" },
    { authorization: `Basic ${token}` },
    { authorization: `Bearer ${token}x` },
    { cookie: `token=${token}` },
  ];
  for (const route of [...apiRoutes, `runs?token=${token}`]) {
    for (const given of headers) {
      const request = new Request(`http://localhost/api/${route}`, { headers: { ...given } });
      const response = await handler(request);
      expect(response.status, route).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
      expect(await response.json()).toMatchObject({ error: { code: "UNAUTHORIZED" } });
    }
  }
  for (const action of ["resume", "retry", "answer", "fork", "replay", "rollback", "cancel"]) {
    const request = new Request(`http://localhost/api/runs/x/${action}`, { method: "POST" });
    expect((await handler(request)).status).toBe(401);
  }
  const removal = new Request("http://localhost/api/runs/x", { method: "DELETE" });
  expect((await handler(removal)).status).toBe(401);
});

test("a Host or Origin that is not allowed is refused on every route, token or not", async () => {
  const { call, handler } = opened({ store: new MemoryStore() });
  const foreign = [
    { host: "evil.example" },
    { host: "localhost.evil.example" },
    { host: "127.0.0.1.evil.example:4200" },
    { host: "evil.example:80@localhost" },
    { host: "localhost:4200", origin: "http://evil.example" },
    { host: "localhost:4200", origin: "http://localhost:9999" },
    { host: "localhost:4200", origin: "null" },
    { host: "localhost:4200", origin: "http://localhost:4200.evil.example" },
  ];
  for (const headers of foreign) {
    for (const path of ["/", "/page.js", "/api/runs", "/api/nothing", "/api/runs/x/retry"]) {
      const method = path.endsWith("retry") ? "POST" : "GET";
      const response = await call(method, path, undefined, headers);
      expect(response.status, JSON.stringify(headers)).toBe(403);
    }
  }
  const open = new Request("http://localhost/api/runs", { headers: { host: "evil.example" } });
  expect((await handler(open)).status).toBe(403);
  const rebound = new Request("http://evil.example/api/runs");
  expect((await handler(rebound)).status).toBe(403);
});

test("its own page may call it, by each name of this machine", async () => {
  const { call } = opened({ store: new MemoryStore() });
  for (const host of ["localhost:4200", "127.0.0.1:4200", "[::1]:4200", "LOCALHOST"]) {
    const own = { host, origin: `http://${host.toLowerCase()}` };
    expect((await call("GET", "/api/runs", undefined, own)).status).toBe(200);
  }
});

test("hosts replaces the names that are allowed, also behind a proxy", async () => {
  const hosts = ["studio.example.com", "backend:8080"];
  const { call } = opened({ store: new MemoryStore(), hosts });
  const status = async (headers: object) =>
    (await call("GET", "/api/runs", undefined, headers)).status;
  const origin = "https://studio.example.com";
  expect(await status({ host: "studio.example.com", origin })).toBe(200);
  expect(await status({ host: "backend:8080", origin })).toBe(200);
  expect(await status({ host: "backend:9090" })).toBe(403);
  expect(await status({ host: "localhost" })).toBe(403);
});

test("without token and auth a token is made that nobody can guess", async () => {
  const one = studio({ store: new MemoryStore() });
  const other = studio({ store: new MemoryStore() });
  expect(one.token).toMatch(/^[\w-]{32}$/);
  expect(one.token).not.toBe(other.token);
  const headers = { authorization: `Bearer ${one.token}` };
  const request = () => new Request("http://localhost/api/runs", { headers });
  expect((await one(request())).status).toBe(200);
  expect((await other(request())).status).toBe(401);
});

test("auth decides instead of a token, and names who it is for the audit", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const events: unknown[] = [];
  const handler = studio({
    store,
    auth: async (request) => request.headers.get("x-user") ?? false,
    observer: ({ type, runId, data }) => {
      events.push({
        type,
        runId,
        ...("actor" in data && { actor: data.actor, for: data.purpose }),
      });
    },
  });
  expect(handler.token).toBeUndefined();
  const call = (headers: Record<string, string>) =>
    handler(
      new Request("http://localhost/api/runs/monday/rollback", {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ at: "1" }),
      }),
    );
  expect((await call({})).status).toBe(401);
  expect(events).toEqual([]);
  expect((await call({ "x-user": "ada" })).status).toBe(200);
  const by = { runId: "monday", actor: "studio/ada", for: "studio rollback" };
  expect(events).toContainEqual({ type: "checkpoint.load", ...by });
  expect(events).toContainEqual({ type: "checkpoint.save", ...by });
});

test("a read-only studio refuses everything that changes a run", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const { call, get } = opened({ store, readOnly: true, graphs: [articleGraph(store)] });
  const before = await store.history("monday");
  for (const action of ["resume", "retry", "answer", "fork", "replay", "rollback", "cancel"]) {
    const response = await call("POST", `/api/runs/monday/${action}`, { at: "1" });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ error: { code: "READ_ONLY" } });
  }
  expect((await call("DELETE", "/api/runs/monday")).status).toBe(403);
  expect(await store.history("monday")).toEqual(before);
  expect((await get<"GET /api/runs/:id">("/api/runs/monday")).actions).toEqual([]);
});

test("no answer can be framed, cached, sniffed or run as script", async () => {
  const { call } = opened({ store: new MemoryStore() });
  for (const path of ["/", "/api/runs", "/api/nothing", "/nothing.js"]) {
    const { headers } = await call("GET", path);
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("x-frame-options")).toBe("DENY");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.has("access-control-allow-origin")).toBe(false);
    expect(headers.has("set-cookie")).toBe(false);
  }
});

test("the page needs no token, and only its own files are served", async () => {
  const handler = studio({ store: new MemoryStore(), token });
  const get = (path: string, method = "GET") =>
    handler(new Request(`http://localhost${path}`, { method }));
  // 503 says how to build the page, where it is not built.
  expect([200, 503]).toContain((await get("/")).status);
  for (const path of [
    "/../package.json",
    "/..%2f..%2fpackage.json",
    "/%2e%2e/index.js",
    "/x/y.js",
  ]) {
    expect((await get(path)).status, path).toBe(404);
  }
  expect((await get("/", "POST")).status).toBe(405);
  expect(await (await get("/", "HEAD")).text()).toBe("");
});

test("hostile data comes back as JSON, and nothing else", async () => {
  const store = new MemoryStore();
  const evil = `</script><img src=x onerror=alert(1)>\r\n\r\ndata: x\u2028`;
  await State.create(
    { [evil]: evil },
    { runId: evil.slice(0, 40).replace(/[\r\n]/g, ""), metadata: { evil } },
  )
    .setCheckpointNode(evil)
    .checkpoint(store);
  const { call, get } = opened({ store });
  const [run] = (await get<"GET /api/runs">("/api/runs")).runs;
  const id = encodeURIComponent(run?.runId ?? "");
  expect(run).toMatchObject({ node: evil, metadata: { evil } });
  for (const path of ["runs", `runs/${id}`, `runs/${id}/state`, `runs/${id}/history`]) {
    const response = await call("GET", `/api/${path}`);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(JSON.parse(await response.text())).toBeTypeOf("object");
  }
});

test.each([
  ["BAD_REQUEST", 400, "{", {}],
  ["BAD_REQUEST", 400, "[]", {}],
  ["BAD_REQUEST", 400, '{"odd":1}', {}],
  ["BAD_REQUEST", 400, '{"at":5}', {}],
  ["BAD_REQUEST", 400, '{"data":[]}', {}],
  ["BAD_REQUEST", 415, '{"at":"1"}', { "content-type": "text/plain" }],
  ["TOO_LARGE", 413, JSON.stringify({ data: { text: "x".repeat(1_100_000) } }), {}],
  ["SERIALIZATION", 422, '{"data":{"x":{"$odd":1}}}', {}],
])("a body that is wrong is refused: %s %s", async (code, status, body, headers) => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const { call } = opened({ store });
  const response = await call("POST", "/api/runs/monday/fork", body, headers);
  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject({ error: { code } });
  expect(await store.list()).toEqual(["monday"]);
});

test("a body without a length is read no further than it may be", async () => {
  const { handler } = opened({ store: new MemoryStore() });
  let given = 0;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      given += 65_536;
      controller.enqueue(new Uint8Array(65_536).fill(32));
    },
  });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const request = new Request("http://localhost/api/runs/x/fork", {
    ...{ method: "POST", headers, body, duplex: "half" },
  });
  expect((await handler(request)).status).toBe(413);
  expect(given).toBeLessThan(2_000_000);
});

test.each([
  [{ token: "short" }, "options.token"],
  [{ auth: true }, "options.auth"],
  [{ hosts: "localhost" }, "options.hosts"],
  [{ graphs: ["article"] }, "options.graphs[0]"],
  [{ client: {} }, "options.client"],
  [{ basePath: "studio" }, "options.basePath"],
  [{ pollMs: 1 }, "options.pollMs"],
  [{ store: 5 }, "options.store"],
  [{ store: undefined }, "options.store"],
  [{ log: {} }, "options.log"],
  [{ odd: 1 }, "options.odd"],
])("an option that is invalid is refused by its name: %j", (options, name) => {
  const given = { store: new MemoryStore(), ...options } as never;
  expect(() => studio(given)).toThrow(name);
});

test("a studio can be mounted below a path", async () => {
  const { call } = opened({ store: new MemoryStore(), basePath: "/ops/studio" });
  expect((await call("GET", "/ops/studio/api/runs")).status).toBe(200);
  expect((await call("GET", "/api/runs")).status).toBe(404);
  const moved = await call("GET", "/ops/studio");
  expect([moved.status, moved.headers.get("location")]).toEqual([308, "/ops/studio/"]);
});
