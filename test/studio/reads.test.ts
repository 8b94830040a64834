import { expect, test } from "vitest";
import { MemoryStore, State } from "waymark";
import { articleGraph, opened, pausedRun } from "./harness.js";

const bytes = new Uint8Array([1, 2, 3]);

async function withRich(runId = "rich"): Promise<MemoryStore> {
  const store = new MemoryStore({ keep: Number.POSITIVE_INFINITY });
  const first = await State.create(
    {
      when: new Date(0),
      index: new Map<unknown, unknown>([["a", 1n]]),
      names: new Set(["x"]),
      bytes,
      pattern: /a+/g,
      site: new URL("https://example.com/"),
      fault: new TypeError("odd"),
      nothing: Number.NaN,
      long: "x".repeat(100_000),
      list: Array.from({ length: 5000 }, (_, at) => ({ at, text: "some text" })),
    },
    { runId },
  ).checkpoint(store);
  await first.set("when", new Date(1)).set("long", "y").checkpoint(store);
  return store;
}

test("the session says which store it is and what can be done", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const { get } = opened({ store, name: "file:.waymark", graphs: [articleGraph(store)] });
  expect(await get<"GET /api/session">("/api/session")).toMatchObject({
    store: "file:.waymark",
    readOnly: false,
    graphs: [{ name: "article", runnable: true }],
    log: false,
    redacted: false,
    actions: ["resume", "retry", "answer", "replay", "cancel", "fork", "rollback", "delete"],
  });
  const looking = opened({ store, readOnly: true, redact: ["data.text"] });
  expect(await looking.get<"GET /api/session">("/api/session")).toMatchObject({
    store: "MemoryStore",
    readOnly: true,
    graphs: [{ name: "article", runnable: false }],
    redacted: true,
    actions: [],
  });
});

test("runs come in pages, filtered by status, graph, metadata and text", async () => {
  const store = new MemoryStore();
  for (let at = 0; at < 7; at++) {
    const metadata = { customer: at % 2 === 0 ? "acme" : "other", number: at };
    await State.create({ at }, { runId: `run-${at}`, metadata }).checkpoint(store);
  }
  await pausedRun(store, "monday", { customer: "acme" });
  const { get } = opened({ store });
  const list = (query: string) => get<"GET /api/runs">(`/api/runs?${query}`);
  const ids = async (query: string) => (await list(query)).runs.map(({ runId }) => runId).sort();

  const first = await list("limit=5");
  expect(first.runs).toHaveLength(5);
  const second = await list(`limit=5&cursor=${first.next}`);
  expect(second.runs).toHaveLength(3);
  expect(second.next).toBeUndefined();
  expect(new Set([...first.runs, ...second.runs].map(({ runId }) => runId)).size).toBe(8);

  expect(await ids("status=paused&status=failed")).toEqual(["monday"]);
  expect(await ids("graph=article")).toEqual(["monday"]);
  expect(await ids("metadata=customer%3Dacme&metadata=number%3D2")).toEqual(["run-2"]);
  expect(await ids("q=OTHER")).toEqual(["run-1", "run-3", "run-5"]);
  expect(await ids("q=publish")).toEqual(["monday"]);
  expect(await ids("q=nowhere")).toEqual([]);

  const searched = await list("q=run-&limit=2");
  expect(searched.runs).toHaveLength(2);
  const rest = await list(`q=run-&cursor=${searched.next}`);
  expect(rest.runs).toHaveLength(5);
  expect((await list("status=paused")).runs[0]).toMatchObject({
    node: "review",
    nextNode: "publish",
    step: 2,
    maxSteps: 3,
    costUsd: 0.25,
    live: false,
    waitsFor: ["publish?"],
    metadata: { customer: "acme" },
  });
});

test.each(["status=odd", "limit=0", "limit=1000", "limit=x", "cursor=x", "metadata=x"])(
  "a query of runs that can't be understood is refused: %s",
  async (query) => {
    const { call } = opened({ store: new MemoryStore() });
    expect((await call("GET", `/api/runs?${query}`)).status).toBe(400);
  },
);

test("a run's view has its steps, what comes next, its ledger, pauses and graph", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const { get } = opened({ store, name: "file:.waymark", graphs: [articleGraph(store)] });
  const view = await get<"GET /api/runs/:id">("/api/runs/monday");
  expect(view).toMatchObject({
    run: { runId: "monday", status: "paused" },
    warnings: [],
    reason: "pause",
    parent: null,
    visits: { draft: 1, review: 1 },
    steps: [
      { node: "draft", step: 1, saved: true, attempts: 1, items: [], usage: { costUsd: 0.25 } },
      { node: "review", step: 2 },
    ],
    next: {
      node: "publish",
      holder: null,
      command: "waymark resume monday --input JSON --store file:.waymark",
    },
    pauses: [{ node: "review", reason: "publish?", ask: { words: 2 }, into: "approved" }],
    ledger: {
      usage: { costUsd: 0.25 },
      nodes: { draft: { inputTokens: 100 } },
      decisions: [{ description: "short", rationale: "no time" }],
      confidence: 0.5,
    },
    error: null,
  });
  expect(view.topology?.edges).toContainEqual({
    from: "draft",
    to: "review",
    name: "ready",
    conditional: false,
  });
  expect(view.actions.map(({ action }) => action)).toEqual([
    "answer",
    "fork",
    "replay",
    "rollback",
    "delete",
  ]);
});

test("a run is drawn without the graph's code, and only what the store does can be done", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const { get } = opened({ store });
  const view = await get<"GET /api/runs/:id">("/api/runs/monday");
  expect(view.topology?.nodes.map(({ name }) => name)).toEqual(["draft", "review", "publish"]);
  expect(view.actions.map(({ action }) => action)).toEqual(["fork", "rollback", "delete"]);
});

test("a State has tags for what JSON lacks, and large values come on demand", async () => {
  const store = await withRich();
  const { get } = opened({ store });
  const { data } = await get<"GET /api/runs/:id/state">("/api/runs/rich/state?at=0").then(
    (view) => view as { data: Record<string, unknown> },
  );
  expect(data).toMatchObject({
    when: { $date: "1970-01-01T00:00:00.001Z" },
    index: { $map: [["a", { $bigint: "1" }]] },
    names: { $set: ["x"] },
    bytes: { $bytes: ["Uint8Array", "AQID"] },
    pattern: { $regexp: ["a+", "g", 0] },
    site: { $url: "https://example.com/" },
    nothing: { $number: "NaN" },
    list: { $large: { kind: "array", length: 5000 } },
  });

  const history = await get<"GET /api/runs/:id/history">("/api/runs/rich/history");
  expect(history.checkpoints.map(({ sequence }) => sequence)).toEqual([2, 1]);
  expect(history.problems).toEqual([]);
  const at = `at=${history.checkpoints[1]?.checkpointId}`;
  const value = (path: unknown, more = "") =>
    get<"GET /api/runs/:id/state">(
      `/api/runs/rich/state?${at}&path=${encodeURIComponent(JSON.stringify(path))}${more}`,
    );
  expect(await value(["data", "index", "$map", 0, 1])).toMatchObject({ value: { $bigint: "1" } });
  const text = (await value(["data", "long"])) as { value: string; next: number };
  expect(text).toMatchObject({ length: 100_000, from: 0, next: 65_536 });
  const rest = (await value(["data", "long"], `&from=${text.next}`)) as { value: string };
  expect(text.value.length + rest.value.length).toBe(100_000);
  expect(await value(["data", "list"], "&from=4900")).toMatchObject({
    length: 5000,
    from: 4900,
    value: expect.objectContaining({ length: 100 }),
  });
  expect(await value(["data", "list", 4999, "at"])).toMatchObject({ value: 4999 });

  const matches = await get<"GET /api/runs/:id/state">(`/api/runs/rich/state?${at}&q=EXAMPLE`);
  expect(matches).toEqual({
    matches: [{ path: ["site", "$url"], value: "https://example.com/" }],
    more: false,
  });
  expect(await get<"GET /api/runs/:id/state">(`/api/runs/rich/state?${at}&q=text`)).toMatchObject({
    more: true,
  });
});

test.each(["path=x", "path=%5B%22nowhere%22%5D", "path=%5Bnull%5D", "path=%5B%5D&from=-1"])(
  "a State's query that leads nowhere is refused: %s",
  async (query) => {
    const { call } = opened({ store: await withRich() });
    expect((await call("GET", `/api/runs/rich/state?${query}`)).status).toBe(400);
  },
);

test("keys that every object has lead nowhere", async () => {
  const { call } = opened({ store: await withRich() });
  for (const path of [["__proto__"], ["data", "constructor"], ["data", "list", "length", "x"]]) {
    const query = encodeURIComponent(JSON.stringify(path));
    expect((await call("GET", `/api/runs/rich/state?path=${query}`)).status).toBe(400);
  }
});

test("two checkpoints are compared by path", async () => {
  const store = await withRich();
  await State.create({ when: "never" }, { runId: "other" }).checkpoint(store);
  const { call, get } = opened({ store });
  const { checkpoints } = await get<"GET /api/runs/:id/history">("/api/runs/rich/history");
  const from = checkpoints[1]?.checkpointId;
  const found = await get<"GET /api/runs/:id/diff">(`/api/runs/rich/diff?from=${from}`);
  expect(found).toMatchObject({
    from: { runId: "rich", sequence: 1 },
    to: { runId: "rich", sequence: 2 },
    changes: [
      {
        op: "change",
        path: "data.when",
        before: { $date: "1970-01-01T00:00:00.000Z" },
        after: { $date: "1970-01-01T00:00:00.001Z" },
      },
      {
        op: "change",
        path: "data.long",
        before: { $large: { kind: "string", length: 100_000 } },
        after: "y",
      },
    ],
    more: false,
  });
  const all = await get<"GET /api/runs/:id/diff">(`/api/runs/rich/diff?from=${from}&all=true`);
  expect(all.changes.map(({ path }) => path)).toContain("sequence");
  const runs = await get<"GET /api/runs/:id/diff">("/api/runs/rich/diff?run=other");
  expect(runs.changes).toContainEqual(expect.objectContaining({ op: "remove", path: "data.list" }));
  expect((await call("GET", "/api/runs/rich/diff")).status).toBe(400);
  expect((await call("GET", "/api/runs/rich/diff?from=nowhere")).status).toBe(404);
});

test("what is redacted is in no answer", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday", { customer: "acme-secret" });
  const redact = ["data.topic", "data.text", "metadata.customer", "pauses.*.reason"];
  const { call } = opened({ store, redact, graphs: [articleGraph(store)] });
  const routes = [
    ...["runs", "runs?q=acme", "runs/monday", "runs/monday/history", "runs/monday/state", "inbox"],
    ...["runs/monday/state?q=cairns", "runs/monday/diff?from=1", "figures", "session"],
  ];
  for (const route of routes) {
    const response = await call("GET", `/api/${route}`);
    expect(response.status).toBe(200);
    expect(await response.text()).not.toMatch(/cairns|acme-secret|publish\?/);
  }
});

test("a run, a checkpoint, a route that is not there is a 404", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const { call } = opened({ store });
  const routes = [
    ...["runs/gone", "runs/gone/history", "runs/gone/state", "runs/monday/state?at=99"],
    ...["nothing", "runs/monday/nothing", "runs/monday/state/x", "session/x", ""],
  ];
  for (const route of routes) expect((await call("GET", `/api/${route}`)).status, route).toBe(404);
  expect((await call("PUT", "/api/runs/monday")).status).toBe(405);
  expect((await call("POST", "/api/runs")).status).toBe(405);
  expect((await call("POST", "/api/runs/monday/state")).status).toBe(405);
  expect((await call("GET", "/api/runs/monday/retry")).status).toBe(405);
  expect((await call("GET", "/api/runs/%E0%A4%A")).status).toBe(400);
  expect((await call("GET", "/api/runs/%00")).status).toBe(400);
});

test("open pauses are in the inbox, the oldest first", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "first", { customer: "acme" });
  await pausedRun(store, "second");
  await State.create({}, { runId: "other" }).checkpoint(store);
  const { get } = opened({ store, graphs: [articleGraph(store)] });
  const { pauses, more } = await get<"GET /api/inbox">("/api/inbox");
  expect(more).toBe(false);
  expect(pauses.map(({ runId }) => runId).sort()).toEqual(["first", "second"]);
  const since = pauses.map((one) => one.since);
  expect(since).toEqual(since.toSorted());
  expect(pauses.find(({ runId }) => runId === "first")).toMatchObject({
    ...{ graph: "article", node: "review", reason: "publish?", ask: { words: 2 } },
    ...{ metadata: { customer: "acme" }, answerable: true },
    command: "waymark resume first --input JSON",
  });
});

test("figures count runs, and say what nodes took and cost", async () => {
  const store = new MemoryStore();
  const graph = articleGraph(store);
  for (const runId of ["a", "b", "c"]) {
    await pausedRun(store, runId);
    if (runId !== "c") await graph.resume(runId, { input: true });
  }
  const failing = articleGraph(store, { count: 1 });
  await failing.execute(State.create({ topic: "x", text: "" })).catch(() => {});
  const { get } = opened({ store });
  const { graphs, more } = await get<"GET /api/figures">("/api/figures?graph=article");
  expect(more).toBe(false);
  expect(graphs).toHaveLength(1);
  expect(graphs[0]).toMatchObject({
    graph: "article",
    runs: 4,
    statuses: { completed: 2, paused: 1, failed: 1 },
    failureRate: 1 / 3,
    sampled: 4,
    costUsd: 1,
    dearest: ["draft"],
  });
  expect(graphs[0]?.days.reduce((sum, { runs }) => sum + runs, 0)).toBe(4);
  const node = (name: string) => graphs[0]?.nodes.find((one) => one.node === name);
  expect(node("draft")).toMatchObject({ visits: 4, costUsd: 1, inputTokens: 400, failures: 0 });
  expect(node("review")).toMatchObject({ visits: 3, failures: 1 });
  expect(await get<"GET /api/figures">("/api/figures?graph=none")).toEqual({
    graphs: [],
    more: false,
  });
});
