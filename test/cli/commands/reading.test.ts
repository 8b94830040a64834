import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { State, StateGraph } from "waymark";
import { FileStore } from "waymark/stores/file";
import { articleRun, contentOf, json, newFolder, project, spoil, waymark } from "../harness.js";

const stores = [{ store: "file:.waymark" }, { store: "sqlite:.waymark/runs.db" }];

describe.each(stores)("reading runs in $store", ({ store }) => {
  test("lists runs", async () => {
    const folder = project(store);
    expect((await waymark(folder, "list")).out).toMatch(/^no runs in (file|sqlite):/);
    await articleRun(folder);
    const { out } = await waymark(folder, "list");
    expect(out).toMatch(/^run +graph +status +node +steps +updated +cost\n/);
    expect(out).toMatch(/monday +article +completed +publish +3 +(now|\d+ s ago) +\$0\.05/);
    expect(await json(folder, "list")).toEqual([
      expect.objectContaining({
        runId: "monday",
        graph: "article",
        status: "completed",
        step: 3,
        costUsd: 0.05,
        live: false,
      }),
    ]);
  });

  test("lists runs by status or graph, and reports if there are more", async () => {
    const folder = project(store);
    for (const id of ["one", "two"]) await articleRun(folder, id);
    expect(await json(folder, "list", "--status", "failed")).toEqual([]);
    expect(await json(folder, "list", "--graph", "flaky")).toEqual([]);
    expect(await json(folder, "list", "--status", "failed", "--status", "completed")).toHaveLength(
      2,
    );
    const { out, err } = await waymark(folder, "list", "--limit", "1");
    expect(out.trim().split("\n")).toHaveLength(2);
    expect(err).toBe("there are more: --limit 2 shows them\n");
  });

  test("shows the steps of a run", async () => {
    const folder = project(store);
    await articleRun(folder);
    const { out } = await waymark(folder, "show", "mond");
    expect(out).toMatch(/^run +monday\ngraph +article\nstatus +completed\n/);
    expect(out).toContain("900 tokens in, 100 out, $0.05");
    expect(out).toMatch(/1 {2}draft .*\n2 {2}review .*\n3 {2}publish /);
    expect(out).toContain("draft  write about cairns: asked for (0.9)");
    const report = await json(folder, "show", "monday");
    expect(report).toMatchObject({ runId: "monday", completedSteps: 3, lastStep: "publish" });
    expect((await waymark(folder, "show", "monday", "--markdown")).out).toMatch(/^# Run monday\n/);
  });

  test("lists the checkpoints of a run", async () => {
    const folder = project(store);
    await articleRun(folder);
    const { out } = await waymark(folder, "history", "monday");
    expect(out).toMatch(/^seq +step +node +status +reason +saved +size +checkpoint\n/);
    expect(out).toMatch(/ 4 +3 +publish +completed +complete /);
    expect(await json(folder, "history", "monday", "--limit", "2")).toMatchObject([
      { sequence: 4, step: 3, node: "publish" },
      { sequence: 3, step: 2, node: "review" },
    ]);
  });

  test("prints a State or a part of it, current or earlier", async () => {
    const folder = project(store);
    await articleRun(folder);
    expect(await json(folder, "state", "monday")).toMatchObject({ step: 3, status: "completed" });
    expect(await json(folder, "state", "monday", "--at", "1", "--path", "data.parts")).toEqual([
      "draft",
    ]);
    const [, second] = (await json(folder, "history", "monday")) as { checkpointId: string }[];
    const id = second?.checkpointId ?? "";
    expect(await json(folder, "state", "monday", "--at", id, "--path", "step")).toBe(2);
    expect((await waymark(folder, "state", "monday", "--path", "data.topic")).out).toBe("cairns\n");
    expect((await waymark(folder, "state", "monday", "--path", "data.parts[0]")).out).toBe(
      "draft\n",
    );
    expect((await waymark(folder, "state", "monday", "--path", "data.parts")).out).toBe(
      '[\n  "draft",\n  "review",\n  "publish"\n]\n',
    );
  });

  test("compares two checkpoints, or two runs", async () => {
    const folder = project(store);
    await articleRun(folder);
    expect((await waymark(folder, "diff", "monday", "1", "2")).out).toBe(
      '~ step  1 → 2\n~ checkpointNode  "draft" → "review"\n+ data.parts.1  "review"\n',
    );
    expect((await waymark(folder, "diff", "monday", "1", "1")).out).toBe("no difference\n");
    expect(await json(folder, "diff", "monday", "2", "1")).toContainEqual({
      op: "remove",
      path: "data.parts.1",
      before: "review",
    });
    const none = await waymark(folder, "diff", "monday");
    expect(none.code).toBe(2);
    expect(none.err).toContain("diff needs a checkpoint or another run");
    const newest = (await waymark(folder, "diff", "monday", "2")).out;
    expect(newest).toContain('+ data.parts.2  "publish"\n');
    expect((await waymark(folder, "diff", "monday", "--at", "2")).out).toBe(newest);
    expect((await waymark(folder, "diff", "monday", "review")).out).toBe(newest);
    await articleRun(folder, "tuesday");
    // The times of decisions differ.
    const changes = (await json(folder, "diff", "monday", "tuesday")) as { path: string }[];
    expect(changes.map(({ path }) => path)).toEqual(["ledger.decisions.0.timestamp"]);
    const all = (await json(folder, "diff", "monday", "tuesday", "--all")) as { path: string }[];
    expect(all.map(({ path }) => path)).toContain("runId");
  });

  test("changes nothing", async () => {
    const folder = project(store);
    await articleRun(folder);
    const before = contentOf(join(folder, ".waymark"));
    for (const args of [
      ["list"],
      ["show", "monday"],
      ["history", "monday"],
      ["state", "monday"],
      ["diff", "monday", "1", "2"],
      ["validate"],
      ["watch", "monday"],
      ["graph", "article", "--run", "monday"],
      ["export", "monday"],
      ["doctor"],
      ["prune", "--max-runs", "0", "--dry-run"],
      ["completion", "--runs"],
    ]) {
      expect((await waymark(folder, ...args)).code).toBe(0);
    }
    expect(contentOf(join(folder, ".waymark"))).toEqual(before);
  });

  test("reports a missing run in one line", async () => {
    const folder = project(store);
    await articleRun(folder);
    const missing: readonly (readonly [string[], RegExp])[] = [
      [
        ["show", "sunday"],
        /there is no run or checkpoint "sunday" in .*waymark list shows the runs.*checkpoint\.preserve/,
      ],
      [
        ["state", "monday", "--at", "9"],
        /no checkpoint at step 9 .*\(waymark history monday shows those it has\)/,
      ],
      [
        ["state", "monday", "--at", "nope"],
        /run monday has no step, checkpoint, node or phase "nope"/,
      ],
      [
        ["state", "monday", "--path", "data.x"],
        /there is no data\.x \(data has topic, parts, token\)/,
      ],
      [["state", "monday", "--path", "step.x"], /there is no step\.x \(step has nothing\)/],
      [["diff", "monday", "1", "9"], /at step 9/],
    ];
    for (const [args, message] of missing) {
      const { code, out, err } = await waymark(folder, ...args);
      expect(out).toBe("");
      expect(err.trimEnd()).toMatch(message);
      expect(err.trimEnd()).not.toContain("\n");
      expect(code).toBe(3);
    }
  });
});

test("an id's prefix names a run unless it is ambiguous or too short", async () => {
  const folder = project();
  for (const id of ["monday-1", "monday-2"]) await articleRun(folder, id);
  expect((await waymark(folder, "state", "monday-2")).code).toBe(0);
  const several = await waymark(folder, "state", "monday");
  expect(several.code).toBe(2);
  expect(several.err).toContain('"monday" fits several runs: monday-1, monday-2');
  expect((await waymark(folder, "state", "mon")).code).toBe(3);
  expect((await waymark(folder, "state", "")).code).toBe(2);
  for (const n of [3, 4, 5, 6]) await articleRun(folder, `monday-${n}`);
  expect((await waymark(folder, "state", "monday")).err).toContain("monday-5 and 1 more");
});

test("text of a run can't send commands to the terminal", async () => {
  const folder = project();
  const data = JSON.stringify({ topic: "\u001b[2Jred\u009b\u202e", parts: [] });
  const args = ["--id", "evil", "--data", data];
  await waymark(folder, "run", "flaky", ...args);
  const [{ runId }] = (await json(folder, "list")) as [{ runId: string }];
  for (const command of [
    ["list"],
    ["show", runId],
    ["state", runId],
    ["state", runId, "--path", "data.topic"],
  ]) {
    for (const format of [[], ["--json"]]) {
      const { out } = await waymark(folder, ...command, ...format);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be there
      expect(out).not.toMatch(/[\u001b\u009b\u202e]/);
    }
  }
  expect((await waymark(folder, "show", runId)).out).toContain("offline\\x1b[2J");
  expect(await json(folder, "state", runId, "--path", "data.topic")).toBe(
    "\u001b[2Jred\u009b\u202e",
  );
});

test("names of runs, nodes and stores can't send commands to the terminal", async () => {
  const folder = project();
  const runId = "r\u061c\u202e";
  const node = "n\u061c\u202e";
  const store = new FileStore({ root: join(folder, ".waymark") });
  const graph = new StateGraph<{ n: number }, string>({
    checkpoint: { store, interval: 1, preserve: true },
  });
  graph
    .addNode(node, () => ({ n: 1 }))
    .setEntryPoint(node)
    .setExitPoint(node);
  await graph.execute(State.create({ n: 0 }, { runId }));
  await store.close();
  const elsewhere = "file:\u001b[2J\u009b\u202e";
  const file = "\u009b\u202e.jsonl";
  for (const command of [
    ["graph", "--run", runId],
    ["graph", "--run", runId, "--draw"],
    ["completion", "--runs"],
    ["export", runId, "--out", file],
    ["list", "--store", elsewhere],
    ["import", file, "--store", elsewhere],
    ["convert", "--to", "file:\u202ethird"],
  ]) {
    const { out, err, code } = await waymark(folder, ...command);
    expect({ command, code }).toEqual({ command, code: 0 });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be there
    expect(out + err, command.join(" ")).not.toMatch(/[\u001b\u009b\u061c\u202e]/);
  }
});

test("a run without checkpoints is shown from its log", async () => {
  const folder = project();
  const line = (event: string, more: object) =>
    JSON.stringify({
      ts: "2026-01-01T00:00:00.000Z",
      event,
      run: "gone",
      step_id: "",
      parent_id: "",
      node: "",
      source: "article",
      ...more,
    });
  const text = [
    line("graph.start", { entryPoint: "draft", resumed: false }),
    line("graph.complete", { step: 1 }),
  ];
  writeFileSync(join(folder, "events.jsonl"), `${text.join("\n")}\n`);
  const { code, out } = await waymark(folder, "show", "gone", "--log", "events.jsonl");
  expect(code).toBe(0);
  expect(out).toMatch(/status +completed/);
  expect((await waymark(folder, "show", "never", "--log", "events.jsonl")).code).toBe(3);
});

test("a paused run is shown with its pauses and the command to resume", async () => {
  const folder = project();
  const data = JSON.stringify({ topic: "cairns", parts: [], gate: "/nowhere" });
  await waymark(folder, "run", "asking", "--id", "waits", "--data", data);
  expect((await waymark(folder, "show", "waits")).out).toMatch(
    /waits for +review, needs a look: "cairns"\ncontinue +waymark resume waits --input JSON\n/,
  );
  expect(await json(folder, "show", "waits")).toMatchObject({
    live: false,
    waitsFor: ['review, needs a look: "cairns"'],
  });
  await waymark(folder, "run", "flaky", "--id", "it failed", "--data", data);
  const failed = await waymark(folder, "show", "it failed", "--store", "file:.waymark");
  expect(failed.out).toMatch(/next +review\n/);
  expect(failed.out).toContain("continue  waymark resume 'it failed' --store file:.waymark\n");
  const secret = "postgres://me:s3cret@127.0.0.1:1/db";
  expect((await waymark(folder, "show", "waits", "--store", secret)).err).not.toContain("s3cret");
});

test("a run id with a leading dash is given after --, as in the suggested commands", async () => {
  const folder = project();
  const [waits, done] = ["--yes", "-v"];
  const data = JSON.stringify({ topic: "cairns", parts: [] });
  const paused = await waymark(folder, "run", "asking", "--id", waits, "--data", data);
  const goOn = ["resume", "--input", "JSON", "--", waits];
  expect(paused.out).toContain(`continue   waymark ${goOn.join(" ")}\n`);
  const shown = await waymark(folder, "show", "--", waits);
  expect(shown.out).toContain(`waymark ${goOn.join(" ")}\n`);
  expect((await waymark(folder, ...goOn)).code).toBe(0);
  await articleRun(folder, done);
  const none = await waymark(folder, "state", "--at", "9", "--", done);
  expect(none.err).toContain("(waymark history -- -v shows those it has)");
});

test("a corrupt checkpoint is distinguished from a missing one", async () => {
  const folder = project();
  await articleRun(folder);
  spoil(join(folder, ".waymark/monday/checkpoint_0003.json"));
  const { code, err } = await waymark(folder, "state", "monday", "--at", "2");
  expect(code).toBe(1);
  expect(err).toContain('run "monday" has no intact checkpoint at step 2: ');
  expect((await waymark(folder, "state", "monday", "--at", "1")).code).toBe(0);
});

test("without a log, checkpoints show the next node and how long nodes took", async () => {
  const folder = project();
  await articleRun(folder);
  await waymark(folder, "rollback", "monday", "--at", "1", "--yes");
  const { out } = await waymark(folder, "show", "monday");
  expect(out).toMatch(/status +in_progress, stopped\n/);
  expect(out).toMatch(/last +draft\nnext +review\n/);
  expect(out).toMatch(/elapsed +[\d.]+ m?s\nworked +[\d.]+ m?s\n/);
  expect(out).toMatch(/# +node +completed +worked +tokens +cost\n1 +draft +\S+Z +[\d.]+ m?s /);
  expect(await json(folder, "show", "monday")).toMatchObject({ nextStep: "review", live: false });
  // Its graph's code is not needed for it.
  const other = await waymark(folder, "show", "monday", "--no-config");
  expect(other.out).toMatch(/next +review\n/);
});

test("an empty list explains how to name another store", async () => {
  const { out, err } = await waymark(newFolder(), "list");
  expect(out).toMatch(/^no runs in file:/);
  expect(err).toBe("--store, WAYMARK_STORE or waymark.config.ts names another store\n");
  const filtered = await waymark(newFolder(), "list", "--graph", "x", "--store", "file:a");
  expect(filtered.out).toMatch(/^no such runs in file:/);
});
