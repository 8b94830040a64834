import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { articleRun, json, newFolder, project, slowRun, spoil, touch, waymark } from "./harness.js";

const stores = [{ store: "file:.waymark" }, { store: "sqlite:.waymark/runs.db" }];
const start = (more: object = {}) => JSON.stringify({ topic: "cairns", parts: [], ...more });

describe.each(stores)("runs in $store", ({ store }) => {
  test("start and report how they ended", async () => {
    const folder = project(store);
    const { code, out, err } = await waymark(folder, "run", "article", "--data", start());
    expect(code).toBe(0);
    expect(out).toMatch(
      /^run +[\da-f-]{36}\nstatus +completed\nsteps +3\nlast +publish\nusage +900 tokens in, 100 out, \$0\.05\n$/,
    );
    expect(err).toMatch(/^run [\da-f-]{36}\n$/);
    const state = await json({ cwd: folder, input: start() }, "run", "article", "--data", "-");
    expect(state).toMatchObject({
      status: "completed",
      data: { parts: ["draft", "review", "publish"] },
    });
  });

  test("that fail can be resumed", async () => {
    const folder = project(store);
    const gate = join(folder, "gate");
    const data = start({ gate });
    const failed = await waymark(folder, "run", "flaky", "--id", "monday", "--data", data);
    expect(failed.code).toBe(1);
    expect(failed.err).toContain(
      'waymark: run monday: node "review" failed: offline\\x1b[2J (try again: waymark resume monday)',
    );
    expect((await waymark(folder, "resume", "monday")).code).toBe(1);
    touch(folder, "gate");
    expect(await json(folder, "resume", "mond")).toMatchObject({ status: "completed", step: 2 });
    // There is nothing more to do, but to do it again.
    expect((await waymark(folder, "resume", "monday")).code).toBe(0);
    const again = await json(folder, "resume", "monday", "--at", "1");
    expect(again).toMatchObject({ status: "completed", step: 2 });
  });

  test("that wait for a person accept the answer", async () => {
    const folder = project(store);
    const paused = await waymark(folder, "run", "asking", "--id", "monday", "--data", start());
    expect(paused.code).toBe(0);
    expect(paused.out).toMatch(
      /waits for +review, needs a look: "cairns"\ncontinue +waymark resume monday --input JSON/,
    );
    const unanswered = await waymark(folder, "resume", "monday");
    expect(unanswered.code).toBe(2);
    expect(unanswered.err).toBe(
      "waymark: run monday is waiting for an answer (see: waymark show monday; answer: waymark resume monday --input JSON)\n",
    );
    const again = await waymark(folder, "run", "asking", "--id", "monday");
    expect(again).toMatchObject({ code: 2, err: `run monday\n${unanswered.err}` });
    expect(await json(folder, "fork", "monday")).toMatchObject({ status: "paused" });
    const state = await json(folder, "resume", "monday", "--input", "fine by me");
    expect(state).toMatchObject({ status: "completed", data: { approved: "fine by me" } });
  });

  test("take an answer without running anything", async () => {
    const folder = project(store);
    await waymark(folder, "run", "asking", "--id", "monday", "--data", start());
    const named = await waymark(folder, "answer", "monday");
    expect(named).toMatchObject({ code: 2, err: expect.stringContaining("answer needs a value") });
    const kept = await json(folder, "answer", "monday", "fine by me");
    expect(kept).toEqual({ runId: "monday", status: "paused", answered: "review" });
    const state = await json(folder, "resume", "monday");
    expect(state).toMatchObject({ status: "completed", data: { approved: "fine by me" } });
    const late = await waymark(folder, "answer", "monday", "review", "no");
    expect(late).toMatchObject({ code: 2, err: expect.stringContaining("is completed") });
    const none = await waymark(folder, "answer", "monday", "no");
    expect(none.err).toContain("is not waiting for an answer");
  });

  test("stop at Ctrl-C and can be resumed", async () => {
    const folder = project(store);
    const gate = join(folder, "gate");
    let interrupt = (): void => {};
    const world = {
      cwd: folder,
      columns: 80,
      onStart: (stop: () => void) => {
        interrupt = stop;
      },
      onError: (text: string) => {
        if (text.includes("slow  review")) interrupt();
      },
    };
    const args = ["slow", "--id", "monday", "--data", start({ gate })];
    const { code, err } = await waymark(world, "run", ...args);
    expect(code).toBe(130);
    expect(err).toContain("stopping run monday …");
    expect(err).toMatch(/run monday was stopped \(continue: waymark resume monday\)\n$/);
    touch(folder, "gate");
    expect(await json(folder, "resume", "monday")).toMatchObject({ status: "completed", step: 2 });
  });

  test("run again from a step as a fork, keeping the original", async () => {
    const folder = project(store);
    await articleRun(folder);
    const before = await json(folder, "history", "monday");
    const { code, out, err } = await waymark(
      folder,
      "replay",
      "monday",
      "--at",
      "1",
      "--set",
      "topic=dolmens",
      "--json",
    );
    expect(code).toBe(0);
    expect(err).toMatch(
      /^run [\da-f-]{36}, a fork of monday at step 1\nrun +[\da-f-]{36}\ngraph +article\nlast node +draft\ncontinues at +review\n$/,
    );
    expect(JSON.parse(out)).toMatchObject({
      status: "completed",
      parent: { runId: "monday" },
      data: { topic: "dolmens", parts: ["draft", "review", "publish"] },
    });
    expect(await json(folder, "history", "monday")).toEqual(before);
  });

  test("are forked and rolled back without running anything, and resume", async () => {
    const folder = project(store);
    await articleRun(folder);
    const changes = ["--data", '{"topic":"menhirs"}', "--set", 'parts=["x"]'];
    const fork = (await json(folder, "fork", "monday", "--at", "1", ...changes)) as {
      runId: string;
    };
    expect(fork).toMatchObject({ step: 1, status: "in_progress", parent: { runId: "monday" } });
    expect(await json(folder, "state", fork.runId, "--path", "data")).toMatchObject({
      topic: "menhirs",
      parts: ["x"],
    });
    expect(await json(folder, "resume", fork.runId)).toMatchObject({
      data: { parts: ["x", "review", "publish"] },
    });
    expect((await waymark(folder, "fork", "monday")).out).toMatch(
      /status +completed\nsteps +3\nfork of +monday/,
    );
    expect(await json(folder, "fork", "monday", "--at", "0")).toMatchObject({ status: "pending" });

    expect(await json(folder, "rollback", "monday", "--at", "1", "--yes")).toMatchObject({
      runId: "monday",
      step: 1,
      status: "in_progress",
    });
    // Of a step that is there twice, the newer checkpoint is kept.
    expect(await json(folder, "history", "monday")).toHaveLength(4);
    expect(await json(folder, "resume", "monday")).toMatchObject({ status: "completed", step: 3 });
    const world = { cwd: folder, columns: 80, input: "yes\n" };
    const { out, err } = await waymark(world, "rollback", "monday", "--at", "0");
    expect(err).toContain("Set run monday back to step 0? [y/N] ");
    expect(out).toContain("waymark resume monday");
    expect((await waymark(folder, "validate")).code).toBe(0);
  });

  test("left behind by a dead process are recovered", async () => {
    const folder = project(store);
    let interrupt = (): void => {};
    const world = {
      cwd: folder,
      columns: 80,
      onStart: (stop: () => void) => {
        interrupt = stop;
      },
      onError: (text: string) => {
        if (text.includes("slow  review")) interrupt();
      },
    };
    const data = start({ gate: join(folder, "gate") });
    expect((await waymark(world, "run", "slow", "--id", "monday", "--data", data)).code).toBe(130);
    touch(folder, "gate");
    await waymark(folder, "run", "flaky", "--id", "tuesday", "--data", start({ gate: "/nowhere" }));
    const { code, out } = await waymark(
      folder,
      "recover",
      "--max-attempts",
      "1",
      "--timeout",
      "60",
      "--concurrency",
      "1",
    );
    expect(code).toBe(1);
    expect(out).toMatch(/monday +slow +completed +1/);
    expect(out).toMatch(/tuesday +flaky +gave-up +1 .*offline/);
    expect((await waymark(folder, "prune", "--max-runs", "0", "--yes")).out).toContain(
      "2 runs were removed",
    );
    expect((await waymark(folder, "recover")).out).toBe("no run to recover\n");
  });
});

test("a corrupt checkpoint found by a resume is reported", async () => {
  const folder = project();
  const gate = touch(folder, "gate");
  await waymark(folder, "run", "slow", "--id", "monday", "--data", start({ gate }));
  const told = /^a corrupt checkpoint was set aside: .*quarantine.checkpoint_000\d\.json\n/;
  const spoilNewest = (): void => {
    const run = join(folder, ".waymark/monday");
    const files = readdirSync(run).filter((name) => name.startsWith("checkpoint_"));
    spoil(join(run, files.sort().at(-1) ?? ""));
  };
  spoilNewest();
  const first = await waymark(folder, "resume", "monday");
  expect(first.code).toBe(0);
  expect(first.err).toMatch(told);
  // The graph itself loads it where its name is given.
  spoilNewest();
  const second = await waymark(folder, "resume", "monday", "--graph", "slow");
  expect(second.code).toBe(0);
  expect(second.err).toMatch(told);
});

test("a resume by a changed graph reports the change", async () => {
  const folder = newFolder();
  const module = (more: string) => `import { StateGraph } from "waymark";
export const graph = new StateGraph({ name: "one", onMismatch: "warn" })
  .addNode("a", ({ data }) => { if (data.fail) throw new Error("no"); return { n: 1 }; })${more}
  .setEntryPoint("a").setExitPoint("a");`;
  writeFileSync(join(folder, "old.mjs"), module(""));
  writeFileSync(
    join(folder, "new.mjs"),
    module('.addNode("b", (s) => s).addEdge("a", "b").addEdge("b", "a")'),
  );
  const store = ["--store", "file:runs"];
  const data = ["--data", '{"fail":true}'];
  await waymark(folder, "run", "./old.mjs", "--id", "monday", ...data, ...store);
  const { err } = await waymark(folder, "resume", "monday", "--graph", "./new.mjs", ...store);
  expect(err).toContain("the graph has changed since this run was saved\n");
});

test("run --id continues an existing run, or starts it over with --force", async () => {
  const folder = project();
  await articleRun(folder);
  const again = ["run", "article", "--id", "monday", "--data", start({ topic: "other" })];
  expect(await json(folder, ...again)).toMatchObject({ data: { topic: "cairns" } });
  const refused = await waymark(folder, ...again, "--force");
  expect(refused.code).toBe(2);
  expect(refused.err).toContain("Remove run monday in");
  expect(await json(folder, ...again, "--force", "--yes")).toMatchObject({
    data: { topic: "other" },
  });
  expect((await waymark(folder, "run", "article", "--force")).err).toContain("--force needs --id");
});

test("an active run is left alone", async () => {
  const folder = project();
  const run = await slowRun(folder);
  expect((await waymark(folder, "list")).out).toMatch(/in_progress, live/);
  for (const [command, ...rest] of [["resume"], ["rollback", "--at", "1", "--yes"]]) {
    const { code, err } = await waymark(folder, command ?? "", "monday", ...rest);
    expect(code).toBe(1);
    expect(err).toContain(`process ${process.pid} on ${hostname()}`);
    expect(err).toContain("waymark watch monday follows it");
  }
  const named = await waymark(
    folder,
    "rollback",
    "monday",
    "--at",
    "1",
    "--store",
    "file:.waymark",
  );
  expect(named.err).toContain("waymark watch monday --store file:.waymark follows it");
  const forced = await waymark(folder, "run", "slow", "--id", "monday", "--force", "--yes");
  expect(forced.code).toBe(1);
  const path = join(folder, ".waymark/monday/checkpoint_0001.json");
  writeFileSync(path, readFileSync(path, "utf8").replace("cairns", "carins"));
  expect((await waymark(folder, "repair", "--yes")).out).toContain(
    "left alone, a process is working on it",
  );
  expect((await run.finish()).code).toBe(0);
});

test("a second Ctrl-C ends the process at once", async () => {
  const folder = project();
  const gate = join(folder, "gate");
  let interrupt = (): void => {};
  const { left } = await waymark(
    {
      cwd: folder,
      columns: 80,
      onStart: (stop) => {
        interrupt = stop;
      },
      onError: (text) => {
        if (!text.includes("slow  review")) return;
        interrupt();
        interrupt();
      },
    },
    "run",
    "slow",
    "--data",
    start({ gate }),
  );
  expect(left).toBe(130);
});

describe("without a named store", () => {
  const own = `import { StateGraph } from "waymark";
import { FileStore } from "waymark/stores/file";
export const graph = new StateGraph({ name: "own", checkpoint: { store: new FileStore({ root: import.meta.dirname + "/mine" }), interval: 1, preserve: true } })
  .addNode("one", ({ data }) => { if (data.fail) throw new Error("no"); return { n: 1 }; })
  .setEntryPoint("one").setExitPoint("one");
export const silent = new StateGraph({ name: "silent" })
  .addNode("one", ({ data }) => { if (data.fail) throw new Error("no"); return { n: 1 }; })
  .setEntryPoint("one").setExitPoint("one");
export const waiting = new StateGraph({ name: "waiting" })
  .addNode("one", async (_, { signal }) => { for (;;) { signal.throwIfAborted(); await new Promise((done) => setTimeout(done, 5)); } })
  .setEntryPoint("one").setExitPoint("one");
export const text = new StateGraph({ name: "text" })
  .addNode("one", () => { throw "just text"; })
  .setEntryPoint("one").setExitPoint("one");`;

  test("a graph saves in its own store, and its runs are found there", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, "graph.ts"), own);
    writeFileSync(
      join(folder, "waymark.config.json"),
      '{ "graphs": { "own": "./graph.ts#graph" } }',
    );
    expect((await waymark(folder, "run", "own", "--id", "monday")).code).toBe(0);
    expect(await json(folder, "list", "--store", "file:mine")).toMatchObject([{ runId: "monday" }]);
    expect(await json(folder, "list")).toEqual([]);
    expect(await json(folder, "resume", "monday")).toMatchObject({ status: "completed" });
    expect((await waymark(folder, "resume", "tuesday")).code).toBe(3);
    expect((await waymark(folder, "resume", "monday", "--graph", "own")).code).toBe(0);
    expect((await waymark(folder, "resume", "monday", "--store", "file:empty")).code).toBe(3);
  });

  test("a graph without checkpointing is reported as such", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, "graph.ts"), own);
    const { code, err } = await waymark(
      folder,
      "run",
      "./graph.ts#silent",
      "--data",
      '{"fail":true}',
    );
    expect(code).toBe(1);
    expect(err).toMatch(/node "one" failed: no\n$/);
    expect((await waymark(folder, "resume", "monday")).code).toBe(3);
    const text = await waymark(folder, "run", "./graph.ts#text");
    expect(text.err).toMatch(/node "one" failed: just text\n$/);
    let interrupt = (): void => {};
    const world = {
      cwd: folder,
      columns: 80,
      onStart: (stop: () => void) => {
        interrupt = stop;
      },
      onError: (printed: string) => {
        if (printed.includes("waiting  one")) interrupt();
      },
    };
    const stopped = await waymark(world, "run", "./graph.ts#waiting");
    expect(stopped.code).toBe(130);
    expect(stopped.err).toMatch(/was stopped \(it saves no checkpoints\)\n$/);
    const given = await waymark(
      folder,
      "run",
      "./graph.ts#silent",
      "--id",
      "kept",
      "--store",
      "file:kept",
    );
    expect(given.code).toBe(0);
    expect(await json(folder, "list", "--store", "file:kept")).toMatchObject([
      { runId: "kept", status: "completed" },
    ]);
  });
});

test("wrong arguments are refused in one line", async () => {
  const folder = project();
  await articleRun(folder);
  const wrong: readonly (readonly [string[], number, RegExp])[] = [
    [["run", "article", "--data", "{"], 2, /--data is not JSON: .*as in/],
    [["run", "article", "--data", "[1]"], 2, /--data must be a JSON object; got \[1\]/],
    [["run", "article", "--data", "@none.json"], 3, /none\.json can't be read/],
    [
      ["run", "nope"],
      3,
      /there is no graph "nope" \(the config has article, asking, flaky, phased, slow/,
    ],
    [["run"], 2, /missing required argument 'graph'/],
    [["replay", "monday"], 2, /replay needs --at/],
    [["replay", "monday", "--at", "1", "--set", "x"], 2, /--set must be key=value; got "x"/],
    [["replay", "monday", "--at", "9"], 3, /at step 9/],
    [["rollback", "monday"], 2, /rollback needs --at/],
    [["rollback", "monday", "--at", "9"], 3, /at step 9/],
    [["rollback", "monday", "--at", "1"], 2, /There is no terminal to ask in/],
    [["fork", "monday", "--at", "9"], 3, /at step 9/],
    [["fork", "sunday"], 3, /there is no run or checkpoint "sunday"/],
    [["resume", "monday", "--graph", "nope"], 3, /there is no graph "nope"/],
    [["resume", "monday", "--input", "x"], 2, /is not paused/],
    [["recover", "--timeout", "x"], 2, /--timeout must be an integer ≥ 1; got "x"/],
    [["recover", "--no-config"], 3, /the config has no graphs/],
    [["run", "article", "--id", "a\nb"], 2, /runId must be a string/],
  ];
  for (const [args, code, message] of wrong) {
    const ended = await waymark(folder, ...args);
    expect({ args, code: ended.code, err: ended.err }).toEqual({
      args,
      code,
      err: expect.stringMatching(message),
    });
    expect(ended.err.trimEnd()).not.toContain("\n");
  }
});

test("a stack is printed only on request", async () => {
  const folder = project();
  const args = ["run", "flaky", "--data", start()];
  expect((await waymark(folder, ...args)).err).not.toContain("at ");
  const { err } = await waymark(folder, ...args, "--debug");
  expect(err).toMatch(/\n +at /);
  expect(err).toContain("caused by Error: offline");
  expect(err).not.toContain("\u001b");
});
