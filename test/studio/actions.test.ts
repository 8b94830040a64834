import { expect, test, vi } from "vitest";
import { MemoryStore, State, StateGraph } from "waymark";
import type { ActionResult } from "waymark/studio";
import { type Answer, articleGraph, opened, pausedRun } from "./harness.js";

async function result(response: Response): Promise<ActionResult & { code: number }> {
  const body = (await response.json()) as ActionResult;
  return { ...body, code: response.status };
}

test("an answer continues the run, which completes", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const { call, get } = opened({ store, graphs: [articleGraph(store)] });
  const answered = await call("POST", "/api/runs/monday/answer", { input: true });
  expect(await result(answered)).toMatchObject({ runId: "monday", code: 202 });
  await vi.waitFor(async () => {
    expect((await store.load("monday")).status).toBe("completed");
  });
  const { data } = (await get<"GET /api/runs/:id/state">("/api/runs/monday/state")) as {
    data: object;
  };
  expect(data).toMatchObject({ approved: true, text: "about cairns!" });
  const again = await call("POST", "/api/runs/monday/answer", { input: true });
  expect([again.status, await again.json()]).toMatchObject([
    409,
    { error: { code: "WRONG_STATUS" } },
  ]);
});

test("tags in an answer become what they stand for", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const { call } = opened({ store, graphs: [articleGraph(store)] });
  const input = { $date: "2026-01-31T00:00:00.000Z" };
  expect((await call("POST", "/api/runs/monday/answer", { input })).status).toBe(202);
  await vi.waitFor(async () => {
    const { data } = await store.load<{ approved: unknown }>("monday");
    expect(data.approved).toEqual(new Date("2026-01-31"));
  });
});

test("a resume may have the input, and a fork needs no changes", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const { call } = opened({ store, graphs: [articleGraph(store)] });
  const fork = await result(await call("POST", "/api/runs/monday/fork", {}));
  expect((await store.load<object>(fork.runId)).data).toMatchObject({ topic: "cairns" });
  expect((await call("POST", "/api/runs/monday/resume", { input: false })).status).toBe(202);
  await vi.waitFor(async () => {
    expect((await store.load("monday")).data).toMatchObject({
      approved: false,
      text: "about cairns!",
    });
  });
});

test("several pauses are answered by their names; one that is not open is a conflict", async () => {
  const store = new MemoryStore();
  const graph = new StateGraph<{ a?: unknown; b?: unknown }>({
    name: "two",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("ask", async (_state, context) => {
      const [a, b] = await Promise.all([
        context.pause("a", { reason: "a?", ask: 1 }),
        context.pause("b", { reason: "b?", ask: 2 }),
      ]);
      return { a, b };
    })
    .setEntryPoint("ask")
    .setExitPoint("ask");
  await graph.execute(State.create({}, { runId: "two" }));
  const answers: unknown[] = [];
  const handle = { answer: async (...answer: unknown[]) => answers.push(answer) };
  const queue = opened({ store, client: { run: async () => handle } as never });
  const sent = await queue.call("POST", "/api/runs/two/answer", { name: "a", input: 1 });
  expect([sent.status, answers]).toEqual([202, [["a", 1]]]);
  const { call } = opened({ store, graphs: { old: graph } });
  const answer = (body: object) => call("POST", "/api/runs/two/answer", body);
  expect((await answer({ input: 1 })).status).toBe(409);
  expect((await answer({ name: "c", input: 1 })).status).toBe(409);
  expect((await answer({ name: "a" })).status).toBe(400);
  expect((await answer({ name: "a", input: 1 })).status).toBe(202);
  await vi.waitFor(async () => expect((await store.load("two")).pauses).toHaveLength(1));
  await vi.waitFor(async () => {
    expect((await answer({ name: "b", input: 2 })).status).toBe(202);
  });
  await vi.waitFor(async () => {
    expect((await store.load("two")).data).toEqual({ a: 1, b: 2 });
  });
});

test("a failed run is retried; one that did not fail is a conflict", async () => {
  const store = new MemoryStore();
  const faults = { count: 1 };
  const graph = articleGraph(store, faults);
  await graph.execute(State.create({ topic: "x", text: "" }, { runId: "bad" })).catch(() => {});
  const { call, get } = opened({ store, graphs: [graph] });
  const view = await get<"GET /api/runs/:id">("/api/runs/bad");
  expect(view).toMatchObject({
    run: { status: "failed" },
    error: { name: "Error", message: "rate limit", node: "review" },
    next: { node: "review" },
  });
  expect(view.error?.stack).toContain("rate limit");
  expect(view.actions[0]).toEqual({ action: "retry", command: "waymark resume bad" });
  expect(await result(await call("POST", "/api/runs/bad/retry"))).toMatchObject({ code: 202 });
  await vi.waitFor(async () => expect((await store.load("bad")).status).toBe("paused"));
  await vi.waitFor(async () => {
    expect((await call("POST", "/api/runs/bad/retry")).status).toBe(409);
  });
});

test("a fork has the changed data and leaves the original; replay runs it", async () => {
  const store = new MemoryStore();
  const before = await pausedRun(store, "monday");
  const { call } = opened({ store, graphs: [articleGraph(store)] });
  const data = { topic: "dolmens" };
  const fork = await result(await call("POST", "/api/runs/monday/fork", { at: "draft", data }));
  expect(fork).toMatchObject({ code: 200, step: 1, status: "in_progress" });
  const forked = await store.load<{ topic: string }>(fork.runId);
  expect([forked.data.topic, forked.parent?.runId]).toEqual(["dolmens", "monday"]);
  const replay = await result(await call("POST", "/api/runs/monday/replay", { at: "0", data }));
  expect(replay.code).toBe(202);
  await vi.waitFor(async () => {
    const state = await store.load<{ text: string }>(replay.runId);
    expect([state.status, state.data.text]).toEqual(["paused", "about dolmens"]);
  });
  expect((await store.load("monday")).checkpointId).toBe(before.checkpointId);
  expect((await call("POST", "/api/runs/monday/replay", {})).status).toBe(400);
});

test("a rollback sets the run back and keeps its history; resume continues from there", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const { call, get } = opened({ store, graphs: [articleGraph(store)] });
  expect((await call("POST", "/api/runs/monday/rollback", {})).status).toBe(400);
  const back = await result(await call("POST", "/api/runs/monday/rollback", { at: "1" }));
  expect(back).toMatchObject({ code: 200, step: 1, status: "in_progress" });
  const { checkpoints } = await get<"GET /api/runs/:id/history">("/api/runs/monday/history");
  expect(checkpoints.map(({ reason }) => reason)).toContain("pause");
  expect(await result(await call("POST", "/api/runs/monday/resume"))).toMatchObject({ code: 202 });
  await vi.waitFor(async () => expect((await store.load("monday")).status).toBe("paused"));
});

test("a run that is at work can be cancelled, and nothing else; it can be resumed", async () => {
  const store = new MemoryStore();
  let begun = 0;
  const graph = new StateGraph<{ done: boolean }>({
    name: "slow",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("wait", async (_state, { signal }) => {
      begun++;
      if (begun > 1) return { done: true };
      await new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
      return {};
    })
    .setEntryPoint("wait")
    .setExitPoint("wait");
  await State.create({ done: false }, { runId: "slow" }).checkpoint(store);
  const fork = await graph.fork("slow", 0);
  const { call, get } = opened({ store, graphs: [graph] });
  const path = `/api/runs/${fork.runId}`;
  expect((await call("POST", `${path}/resume`)).status).toBe(202);
  await vi.waitFor(() => expect(begun).toBe(1));
  const view = await get<"GET /api/runs/:id">(path);
  expect(view.run.live).toBe(true);
  expect(view.next.holder?.pid).toBe(process.pid);
  expect(view.actions.map(({ action }) => action)).toEqual(["cancel", "fork", "replay"]);
  for (const [method, at] of [
    ["POST", "/resume"],
    ["POST", "/rollback"],
    ["DELETE", ""],
  ] as const) {
    const body = at === "/rollback" ? { at: "0" } : undefined;
    const response = await call(method, `${path}${at}`, body);
    expect([response.status, await response.json()]).toMatchObject([
      409,
      { error: { code: "CHECKPOINT_CONFLICT" } },
    ]);
  }
  expect((await call("POST", `${path}/cancel`)).status).toBe(200);
  expect((await call("POST", `${path}/resume`)).status).toBe(202);
  await vi.waitFor(async () => expect((await store.load(fork.runId)).status).toBe("completed"));
});

test("closing lets the node at work finish, and stops its run", async () => {
  const store = new MemoryStore();
  let begun = 0;
  let isClosing = false;
  const graph = new StateGraph<{ n: number }>({
    name: "slow",
    checkpoint: { store, interval: 1, preserve: true },
    breakpoints: { before: ["wait"] },
  })
    .addNode("wait", async (_state, { draining }) => {
      begun++;
      await new Promise((done) => draining.addEventListener("abort", done));
      isClosing = true;
      return { n: 1 };
    })
    .addNode("after", () => ({ n: 2 }))
    .addEdge("wait", "after")
    .setEntryPoint("wait")
    .setExitPoint("after");
  await graph.execute(State.create({ n: 0 }, { runId: "slow" }));
  const { call, handler } = opened({ store, graphs: [graph] });
  expect((await call("POST", "/api/runs/slow/resume")).status).toBe(202);
  await vi.waitFor(() => expect(begun).toBe(1));
  await handler.close();
  expect(isClosing).toBe(true);
  expect((await store.load<{ n: number }>("slow")).data.n).toBe(1);
});

test("what the studio has no code for is not run", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  await State.create({}, { runId: "bare" }).checkpoint(store);
  const { call } = opened({ store });
  for (const [runId = "", action = ""] of [
    ["monday", "answer"],
    ["monday", "resume"],
    ["monday", "replay"],
    ["bare", "resume"],
    ["bare", "replay"],
    ["bare", "cancel"],
  ]) {
    const bodies: Readonly<Record<string, object>> = { answer: { input: 1 }, cancel: {} };
    const body = bodies[action] ?? { at: "0" };
    const response = await call("POST", `/api/runs/${runId}/${action}`, body);
    expect([response.status, await response.json()]).toMatchObject([
      501,
      { error: { code: "NOT_RUNNABLE" } },
    ]);
  }
  expect(await store.list()).toHaveLength(2);
});

test("a client lets workers continue runs", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const calls: unknown[][] = [];
  const handle = {
    resume: async (input?: unknown) => calls.push(["resume", input]),
    signal: async (name: string, value: unknown) => calls.push(["signal", name, value]),
    cancel: async () => calls.push(["cancel"]),
  };
  const client = {
    run: async (graph: string, runId: string) => {
      calls.push([graph, runId]);
      return handle;
    },
  };
  const { call, get } = opened({ store, client: client as never });
  const view = await get<"GET /api/runs/:id">("/api/runs/monday");
  expect(view.actions[0]?.action).toBe("answer");
  expect((await call("POST", "/api/runs/monday/answer", { input: true })).status).toBe(202);
  expect((await call("POST", "/api/runs/monday/resume")).status).toBe(202);
  expect((await store.load("monday")).reason).toBe("pause");
  expect((await call("POST", "/api/runs/monday/resume", { at: "1" })).status).toBe(202);
  expect((await call("POST", "/api/runs/monday/cancel")).status).toBe(200);
  expect(calls.filter(([name]) => name !== "article")).toEqual([
    ["resume", true],
    ["resume", undefined],
    ["resume", undefined],
    ["cancel"],
  ]);
  expect((await store.load("monday")).reason).toBe("rollback");
});

test("a deleted run is gone; one that is not there is a 404", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const { call } = opened({ store });
  expect((await call("DELETE", "/api/runs/monday")).status).toBe(204);
  expect(await store.list()).toEqual([]);
  expect((await call("DELETE", "/api/runs/monday")).status).toBe(404);
});

test("a store that moved on under an action is a conflict", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const slow = new Proxy(store, {
    get: (target, key) => {
      if (key !== "save")
        return Reflect.get(target, key).bind?.(target) ?? Reflect.get(target, key);
      return async (state: State<object>) => {
        await target.save(await target.load(state.runId));
        return target.save(state);
      };
    },
  });
  const { call } = opened({ store: slow });
  const response = await call("POST", "/api/runs/monday/rollback", { at: "1" });
  const { error } = (await response.json()) as {
    error: Answer<"GET /api/runs"> & { code: string };
  };
  expect([response.status, error.code]).toEqual([409, "CHECKPOINT_CONFLICT"]);
});
