import { expect, test } from "vitest";
import { END, MemoryStore, pause, State, StateGraph } from "waymark";
import { useFakeClock } from "waymark/testing";
import { articleGraph, opened, pausedRun } from "./harness.js";

test("large maps, sets and bytes come in parts that keep their tags", async () => {
  const store = new MemoryStore();
  const names = Array.from({ length: 1000 }, (_, at) => `${at} ${"x".repeat(100)}`);
  await State.create(
    {
      index: new Map(names.map((name, at) => [name, at === 0 ? "y".repeat(5000) : at])),
      names: new Set(names),
      bytes: new Uint8Array(90_000),
    },
    { runId: "large" },
  ).checkpoint(store);
  const { get } = opened({ store });
  const state = (query: string) =>
    get<"GET /api/runs/:id/state">(`/api/runs/large/state?${query}`) as Promise<unknown>;
  const value = (key: string, from: number) =>
    state(`path=${encodeURIComponent(JSON.stringify(["data", key]))}&from=${from}`);

  expect(await state("")).toMatchObject({
    data: {
      index: { $large: { kind: "map", length: 1000 } },
      names: { $large: { kind: "set", length: 1000 } },
      bytes: { $large: { kind: "bytes" } },
    },
  });
  expect(await value("index", 0)).toMatchObject({
    value: {
      $map: expect.arrayContaining([
        [names[0], { $large: { kind: "string", length: 5000, size: 5002 } }],
        [names[199], 199],
      ]),
    },
    ...{ length: 1000, from: 0, next: 200 },
  });
  expect(await value("names", 800)).toEqual({
    ...{ path: ["data", "names"], length: 1000, from: 800 },
    value: { $set: names.slice(800) },
  });
  const whole = Buffer.from(new Uint8Array(90_000)).toString("base64");
  expect(await value("bytes", 0)).toMatchObject({
    value: { $bytes: ["Uint8Array", whole.slice(0, 65_536)] },
    ...{ length: whole.length, next: 65_536 },
  });
  expect(await value("bytes", 65_536)).toMatchObject({
    value: { $bytes: ["Uint8Array", whole.slice(65_536)] },
  });
});

test("a long run has its newest 500 steps, and its checkpoints in pages", async () => {
  const store = new MemoryStore();
  const graph = new StateGraph<{ n: number }>({
    name: "long",
    record: { maxSteps: 2000 },
    maxIterations: 2000,
    checkpoint: { store, interval: 1, preserve: true, keep: Number.POSITIVE_INFINITY },
  })
    .addNode("one", ({ data }) => ({ n: data.n + 1 }))
    .addEdge("one", "one", ({ data }) => data.n < 1100)
    .addEdge("one", END)
    .setEntryPoint("one");
  await graph.execute(State.create({ n: 0 }, { runId: "long" }));
  const { call, get } = opened({ store });
  const { steps } = await get<"GET /api/runs/:id">("/api/runs/long");
  expect(steps.map(({ step }) => step)).toEqual(Array.from({ length: 500 }, (_, at) => at + 601));
  const history = async (query: string) => {
    const path = `/api/runs/long/history${query}`;
    const { checkpoints, total } = await get<"GET /api/runs/:id/history">(path);
    const sequences = checkpoints.map(({ sequence }) => sequence);
    return [total, sequences.length, sequences[0], sequences.at(-1)];
  };
  const [total = 0, ...newest] = await history("");
  expect(newest).toEqual([1000, total, total - 999]);
  expect(await history(`?before=${total - 999}`)).toEqual([total, total - 1000, total - 1000, 1]);
  expect(await history("?before=4&limit=2")).toEqual([total, 2, 3, 2]);
  expect((await call("GET", "/api/runs/long/history?limit=10001")).status).toBe(400);
});

test("the inbox has 500 pauses at most, and says that there are more", async () => {
  const store = new MemoryStore();
  const graph = new StateGraph<object>({
    name: "three",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("ask", async (_state, context) => {
      await Promise.all(["a", "b", "c"].map((name) => context.pause(name, { reason: name })));
      return {};
    })
    .setEntryPoint("ask")
    .setExitPoint("ask");
  for (let at = 0; at < 202; at++) await graph.execute(State.create({}, { runId: `run-${at}` }));
  const { get } = opened({ store });
  const { pauses, more } = await get<"GET /api/inbox">("/api/inbox");
  expect([pauses.length, more]).toEqual([500, true]);
  expect(new Set(pauses.map(({ runId, name }) => `${runId} ${name}`)).size).toBe(500);
});

test("a breakpoint is in the inbox, to be resumed and not answered; what is gone is not", async () => {
  const store = new MemoryStore();
  const graph = new StateGraph<{ n: number }>({
    name: "stops",
    checkpoint: { store, interval: 1, preserve: true },
    breakpoints: { before: ["one"] },
  })
    .addNode("one", () => ({ n: 1 }))
    .setEntryPoint("one")
    .setExitPoint("one");
  await graph.execute(State.create({ n: 0 }, { runId: "stopped" }));
  await pausedRun(store, "gone");
  const load = store.load.bind(store);
  store.load = (runId, ...rest) =>
    runId === "gone" ? Promise.reject(new Error("unreadable")) : load(runId, ...rest);
  const { call, get } = opened({ store, graphs: [graph] });
  const { pauses } = await get<"GET /api/inbox">("/api/inbox");
  expect(pauses).toMatchObject([
    { runId: "stopped", answerable: false, command: "waymark resume stopped" },
  ]);
  const view = await get<"GET /api/runs/:id">("/api/runs/stopped");
  expect(view.actions[0]?.action).toBe("resume");
  const answer = await call("POST", "/api/runs/stopped/answer", { input: 1 });
  expect([answer.status, await answer.json()]).toMatchObject([
    409,
    { error: { code: "WRONG_STATUS" } },
  ]);
});

test("a run that can't be loaded is shown with the reason, and can be deleted", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  store.load = () => Promise.reject(new Error("a key is missing"));
  const { call, get } = opened({ store });
  const problem = {
    code: "UNREADABLE",
    message: "a key is missing",
    command: "waymark validate monday",
  };
  expect((await get<"GET /api/runs">("/api/runs")).runs).toMatchObject([{ problem }]);
  expect(await get<"GET /api/runs/:id">("/api/runs/monday")).toMatchObject({
    problem,
    actions: [{ action: "delete", command: "waymark delete monday" }],
  });
  expect((await call("DELETE", "/api/runs/monday")).status).toBe(204);
});

test("a store that only saves and loads shows its runs, and offers what it can do", async () => {
  const memory = new MemoryStore();
  await pausedRun(memory, "monday");
  await State.create({}, { runId: "bare" }).checkpoint(memory);
  const store = {
    save: memory.save.bind(memory),
    load: memory.load.bind(memory),
    delete: memory.delete.bind(memory),
    list: memory.list.bind(memory),
  };
  const looking = opened({ store });
  const drawn = await looking.get<"GET /api/runs/:id">("/api/runs/monday");
  expect([drawn.topology, drawn.run.maxSteps, drawn.run.live]).toEqual([null, null, null]);
  expect(drawn.actions.map(({ action }) => action)).toEqual(["delete"]);
  expect(await looking.get<"GET /api/session">("/api/session")).toMatchObject({
    actions: expect.not.arrayContaining(["resume"]),
  });

  const { call, get } = opened({ store, graphs: [articleGraph(memory)] });
  const view = await get<"GET /api/runs/:id">("/api/runs/monday");
  expect(view.topology?.nodes.map(({ name }) => name)).toEqual(["draft", "review", "publish"]);
  expect(view.actions.map(({ action }) => action)).toEqual(["answer", "delete"]);
  const noHistory = { code: "NO_HISTORY", message: "the store keeps no history" };
  for (const path of ["history", "state?at=draft", "diff?from=draft"]) {
    const answer = await call("GET", `/api/runs/monday/${path}`);
    expect([answer.status, await answer.json()]).toMatchObject([501, { error: noHistory }]);
  }
  expect((await call("GET", "/api/runs/nobody/history")).status).toBe(404);
  expect(await get<"GET /api/runs/:id/log">("/api/runs/monday/log")).toEqual({ lines: [] });
});

test("a run of another process can't be cancelled from here", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const { call, get } = opened({ store, graphs: [articleGraph(store)] });
  await call("POST", "/api/runs/monday/rollback", { at: "1" });
  store.holder = async () => ({ pid: process.pid + 1, host: "elsewhere", since: "" });
  const view = await get<"GET /api/runs/:id">("/api/runs/monday");
  expect(view.next.holder).toMatchObject({ host: "elsewhere" });
  expect(view.next.command).toBe("waymark watch monday");
  expect(view.actions.map(({ action }) => action)).toEqual(["fork", "replay"]);
});

test("metadata is compared as a number, a boolean, a quoted string or text", async () => {
  const store = new MemoryStore();
  for (const [runId, tag] of Object.entries({ a: true, b: "true", c: "[1]" })) {
    await State.create({}, { runId, metadata: { tag } }).checkpoint(store);
  }
  const { get } = opened({ store });
  const ids = async (tag: string) => {
    const query = `metadata=${encodeURIComponent(`tag=${tag}`)}`;
    return (await get<"GET /api/runs">(`/api/runs?${query}`)).runs.map(({ runId }) => runId);
  };
  expect(await ids("true")).toEqual(["a"]);
  expect(await ids('"true"')).toEqual(["b"]);
  expect(await ids("[1]")).toEqual(["c"]);
});

test("a run's view has the state of its agents, and what happens when nobody answers", async () => {
  const store = new MemoryStore();
  const graph = new StateGraph<{ approved?: boolean }>({
    name: "agents",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("ask", (state, { ledger }) => {
      ledger.agent("writer", { status: "working", state: { seen: new Set(["x"]) } });
      ledger.agent("critic", { status: "idle" });
      const onTimeout = { approved: false };
      return pause(state, { reason: "publish?", timeout: 60_000, onTimeout });
    })
    .setEntryPoint("ask")
    .setExitPoint("ask");
  await graph.execute(State.create({}, { runId: "monday" }));
  const { get } = opened({ store });
  const { ledger, pauses } = await get<"GET /api/runs/:id">("/api/runs/monday");
  expect(ledger.agents).toMatchObject({
    writer: { status: "working", state: { seen: { $set: ["x"] } } },
    critic: { status: "idle" },
  });
  expect(ledger.agents.critic).not.toHaveProperty("state");
  expect(pauses).toMatchObject([{ onTimeout: { approved: false } }]);
});

test("figures count by day, and have no times of nodes that never ended", async () => {
  const store = new MemoryStore();
  const graph = new StateGraph<{ n: number }>({
    name: "failing",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("one", () => {
      throw new Error("odd");
    })
    .setEntryPoint("one")
    .setExitPoint("one");
  const clock = useFakeClock(Date.parse("2026-03-01T12:00:00.000Z"));
  try {
    for (let at = 0; at < 3; at++) {
      await graph.execute(State.create({ n: at })).catch(() => {});
      await clock.advance(86_400_000);
    }
  } finally {
    clock.restore();
  }
  const { get } = opened({ store });
  const { graphs } = await get<"GET /api/figures">("/api/figures");
  expect(graphs[0]).toMatchObject({
    failureRate: 1,
    elapsed: null,
    days: [
      { day: "2026-03-01", runs: 1, failed: 1 },
      { day: "2026-03-02", runs: 1, failed: 1 },
      { day: "2026-03-03", runs: 1, failed: 1 },
    ],
    nodes: [{ node: "one", failures: 3, p50Ms: 0, p95Ms: 0 }],
  });
});
