import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { State, StateGraph } from "waymark";
import { eventLog } from "waymark/observers/event-log";
import { FileStore } from "waymark/stores/file";
import { SqliteStore } from "waymark/stores/sqlite";
import { damage, newFolder } from "../cli/harness.js";
import { type Answer, opened, token } from "./harness.js";

test("runs of another process appear in the stream, and in the list", async () => {
  const root = newFolder();
  const { handler, get } = opened({ store: new FileStore({ root }) });
  const headers = { authorization: `Bearer ${token}` };
  const response = await handler(new Request("http://localhost/api/events", { headers }));
  const reader = response.body?.getReader();
  const read = async () => new TextDecoder().decode((await reader?.read())?.value);
  expect(await read()).toContain("event: ready");
  // Nothing is shared with the studio's store but the folder.
  await State.create({}, { runId: "elsewhere" }).checkpoint(new FileStore({ root }));
  expect(await read()).toMatch(/event: run\ndata: .*"runId":"elsewhere"/);
  await handler.close();
  expect((await get<"GET /api/runs">("/api/runs")).runs[0]?.runId).toBe("elsewhere");
});

test.each([
  ["sqlite", (path: string) => new SqliteStore({ path })],
  // The middle of a small file is its header, so that no more than the folder's name is known of the run.
  ["file", (root: string) => new FileStore({ root })],
] as const)("a corrupt run is an answer of its own: %s", async (kind, storeAt) => {
  const folder = newFolder();
  const path = join(folder, "runs");
  const place = `${kind}:${path}`;
  const writer = storeAt(path);
  await State.create({ n: 1 }, { runId: "bad" }).checkpoint(writer);
  await State.create({ n: 1 }, { runId: "good" }).checkpoint(writer);
  const half = await State.create({ n: 1 }, { runId: "half" }).checkpoint(writer);
  await half.setCheckpointNode("draft").checkpoint(writer);
  await damage(folder, `${kind}:runs`, "bad", 1);
  await damage(folder, `${kind}:runs`, "half", 2);
  await writer.close();
  const store = storeAt(path);
  const { call, get } = opened({ store, name: place, readOnly: true });
  const { runs } = await get<"GET /api/runs">("/api/runs");
  const bad = runs.find(({ runId }) => runId === "bad");
  expect(bad?.problem).toMatchObject({ code: "CHECKPOINT_CORRUPT" });
  expect(runs.find(({ runId }) => runId === "good")?.problem).toBeUndefined();
  // It is shown by the checkpoint before.
  const fallen = runs.find(({ runId }) => runId === "half");
  const command = `waymark repair half --store ${place}`;
  expect(fallen).toMatchObject({ costUsd: 0, problem: { code: "CHECKPOINT_CORRUPT", command } });
  const { runs: searched } = await get<"GET /api/runs">("/api/runs?q=ba");
  expect(searched.map(({ runId }) => runId)).toEqual(["bad"]);
  // Page by page each is there once.
  const paged: string[] = [];
  let next: string | undefined = "";
  while (next !== undefined) {
    const page: Answer<"GET /api/runs"> = await get<"GET /api/runs">(
      `/api/runs?limit=1&cursor=${next}`,
    );
    paged.push(...page.runs.map(({ runId }) => runId));
    next = page.next;
  }
  expect(paged.sort()).toEqual(["bad", "good", "half"]);
  const view = await get<"GET /api/runs/:id">("/api/runs/bad");
  expect(view).toMatchObject({
    run: { runId: "bad" },
    problem: {
      code: "CHECKPOINT_CORRUPT",
      expected: expect.any(String),
      actual: expect.any(String),
      command: `waymark repair bad --store ${place}`,
    },
    steps: [],
    topology: null,
    actions: [],
  });
  const state = await call("GET", "/api/runs/bad/state");
  expect([state.status, await state.json()]).toMatchObject([
    422,
    { error: { code: "CHECKPOINT_CORRUPT", expected: expect.any(String) } },
  ]);
  const { problems } = await get<"GET /api/runs/:id/history">("/api/runs/bad/history");
  expect(problems).toContainEqual(expect.objectContaining({ problem: "corrupt" }));
  expect((await call("GET", "/api/figures")).status).toBe(200);
  // Looking at it has set nothing aside.
  const found = [];
  for await (const { problem } of store.verify("bad")) found.push(problem);
  expect(found).toEqual(["corrupt", "empty"]);
  await store.close();
});

test("runs of which nothing can be read come first, among failed ones too, and can be deleted", async () => {
  const root = newFolder();
  const store = new FileStore({ root });
  for (const runId of ["bad", "good", "worse"]) await State.create({}, { runId }).checkpoint(store);
  for (const runId of ["bad", "worse"])
    writeFileSync(join(root, runId, "checkpoint_0001.json"), "");
  expect((await store.unreadable()).sort()).toEqual(["bad", "worse"]);
  const { call, get } = opened({ store });
  const ids = async (query: string) =>
    (await get<"GET /api/runs">(`/api/runs?${query}`)).runs.map(({ runId }) => runId);
  expect(await ids("")).toEqual(["bad", "worse", "good"]);
  expect(await ids("limit=1")).toEqual(["bad", "worse", "good"]);
  expect(await ids("status=failed")).toEqual(["bad", "worse"]);
  expect(await ids("status=pending")).toEqual(["good"]);
  expect(await ids("graph=article")).toEqual([]);
  expect((await call("DELETE", "/api/runs/bad")).status).toBe(204);
  expect((await call("DELETE", "/api/runs/bad")).status).toBe(404);
  expect(await ids("")).toEqual(["worse", "good"]);
});

test("the event log is read page by page, and shows a run whose checkpoints are gone", async () => {
  const root = newFolder();
  const store = new FileStore({ root });
  const log = eventLog({ root });
  const graph = new StateGraph<{ n: number }>({
    name: "logged",
    observer: log,
    checkpoint: { store, interval: 1 },
  })
    .addNode("one", () => ({ n: 1 }))
    .addNode("two", () => ({ n: 2 }))
    .addEdge("one", "two")
    .setEntryPoint("one")
    .setExitPoint("two");
  await graph.execute(State.create({ n: 0 }, { runId: "monday" }));
  await log.close();
  const { call, get } = opened({ store, log: { root } });
  const first = await get<"GET /api/runs/:id/log">("/api/runs/monday/log?limit=2");
  expect(first.lines.map(({ event }) => event)).toEqual(["graph.start", "checkpoint.save"]);
  const rest = await get<"GET /api/runs/:id/log">(`/api/runs/monday/log?after=${first.next}`);
  expect(rest.lines.at(-1)).toMatchObject({ event: "graph.complete" });
  const end = await get<"GET /api/runs/:id/log">(`/api/runs/monday/log?after=${rest.next}`);
  expect(end).toEqual({ lines: [], next: rest.next });
  const newest = await get<"GET /api/runs/:id/log">("/api/runs/monday/log?newest=true&limit=2");
  expect(newest).toEqual({ lines: rest.lines.slice(-2), next: rest.next });
  expect((await call("GET", "/api/runs/monday/log?after=7")).status).toBe(400);
  const view = await get<"GET /api/runs/:id">("/api/runs/monday");
  expect(view).toMatchObject({ run: { status: "completed", graph: "logged" }, checkpointId: null });
  expect(view.steps.map(({ node }) => node)).toEqual(["one", "two"]);
  expect((await call("GET", "/api/runs/nobody")).status).toBe(404);
});

test("a large checkpoint is a warning of its run, in the list and on its page", async () => {
  const store = new FileStore({ root: newFolder() });
  await State.create({ text: "x".repeat(600_000) }, { runId: "large" }).checkpoint(store);
  await State.create({ text: "" }, { runId: "small" }).checkpoint(store);
  const { get } = opened({ store });
  const { runs } = await get<"GET /api/runs">("/api/runs");
  const warning = expect.stringMatching(/^the checkpoint has \d+ bytes, more than warnBytes/);
  const found = Object.fromEntries(runs.map(({ runId, warnings }) => [runId, warnings]));
  expect(found).toEqual({ large: [warning], small: [] });
  const view = await get<"GET /api/runs/:id">("/api/runs/large");
  expect(view.warnings).toEqual([warning]);
});
