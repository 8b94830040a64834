import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import MarkdownIt from "markdown-it";
import { afterAll, describe, expect, test } from "vitest";
import {
  CheckpointNotFoundError,
  ConfigError,
  MemoryStore,
  State,
  StateGraph,
} from "../../src/index.js";
import { eventLog } from "../../src/observers/event-log.js";
import { metrics } from "../../src/observers/metrics.js";
import { report, toMarkdown, toTable } from "../../src/report/index.js";
import { rejection } from "../graphs.js";

const folder = mkdtempSync(join(tmpdir(), "waymark-report-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Data {
  n: number;
}

let roots = 0;
function setting(keep = Number.POSITIVE_INFINITY, preserve = true) {
  const root = join(folder, `${++roots}`);
  const store = new MemoryStore({ keep });
  const fault = { at: -1, times: 0 };
  const graph = new StateGraph<Data>({
    name: "count",
    observer: eventLog({ root }),
    checkpoint: { store, interval: 1, preserve },
  })
    .addNode(
      "tick",
      (state, context) => {
        context.ledger.usage({ inputTokens: 10, costUsd: 0.01 });
        if (context.step === fault.at && fault.times-- > 0) throw new TypeError("no | luck");
        return { n: state.data.n + 1 };
      },
      { retry: { maxAttempts: 2, initialInterval: 0 } },
    )
    .addNode("end", (state, context) => {
      context.ledger.output("result", { n: state.data.n });
      return state;
    })
    .addEdge("tick", "tick", (state) => state.data.n < 4)
    .addEdge("tick", "end")
    .setEntryPoint("tick")
    .setExitPoint("end");
  const start = () => graph.execute(State.create({ n: 0 }, { runId: "r" }));
  return { root, store, graph, fault, start, log: { root } };
}

describe("a report", () => {
  test("of a failed run has the error, its node, and the next step", async () => {
    const { store, fault, start, log, graph } = setting();
    Object.assign(fault, { at: 2, times: 2 });
    await start().catch(() => {});
    const failed = await report("r", { store, log });
    expect(failed).toMatchObject({
      status: "failed",
      completedSteps: 2,
      lastStep: "tick",
      nextStep: "tick",
      resumes: 0,
      error: { name: "TypeError", message: "no | luck", node: "tick" },
      totals: { usage: { inputTokens: 40 } },
    });
    expect(await report("r", { store })).toMatchObject({ status: "failed", nextStep: "tick" });
    expect(await report("r", { log })).toMatchObject({
      status: "failed",
      error: { name: "NODE_FAILED", message: 'node "tick" failed: no | luck', node: "tick" },
      nextStep: "tick",
      totals: { usage: { inputTokens: 40 } },
    });

    fault.times = 1;
    await graph.resume("r");
    const done = await report("r", { store, log });
    expect(done).toMatchObject({ status: "completed", resumes: 1, error: undefined });
    // Two attempts before the resume and two after it, with the usage of all.
    expect(done.steps[2]).toMatchObject({ attempts: 4, usage: { inputTokens: 40 }, saved: true });
    expect(done.steps.reduce((sum, step) => sum + (step.usage?.inputTokens ?? 0), 0)).toBe(
      done.totals.usage.inputTokens,
    );
    expect(done.repeated.visits).toBe(0);
    expect(done.steps.at(-1)?.outputs).toMatchObject({ result: { ref: { n: 4 } } });
    expect(done.nodes).toMatchObject({ tick: { inputTokens: 70, costUsd: 0.07 } });
  });

  test("of a run that was rolled back counts its steps and the lost work", async () => {
    const { store, graph, start, log } = setting();
    await start();
    await graph.rollback("r", 2);
    const back = await report("r", { store, log });
    expect(back).toMatchObject({
      status: "in_progress",
      completedSteps: 2,
      repeated: { visits: 3, usage: { inputTokens: 20 } },
    });
    expect(back.steps.map((step) => step.step)).toEqual([1, 2]);
    await graph.resume("r");
    await graph.resume("r", { step: 4 });
    const again = await report("r", { store, log });
    expect(again).toMatchObject({
      status: "completed",
      resumes: 2,
      completedSteps: 5,
      totals: { usage: { inputTokens: 40 } },
      repeated: { visits: 4, usage: { inputTokens: 20 } },
    });
    expect(again.steps.map((step) => step.usage?.inputTokens)).toEqual([10, 10, 10, 10, undefined]);
  });

  test("of a failed run that was rolled back has no error", async () => {
    const { store, graph, fault, start, log } = setting();
    Object.assign(fault, { at: 2, times: 2 });
    await start().catch(() => {});
    await graph.rollback("r", 1);
    for (const from of [{ store, log }, { log }, { store }]) {
      expect(await report("r", from)).toMatchObject({ status: "in_progress", error: undefined });
    }
  });

  test("of a paused run counts the node's usage before and after the pause", async () => {
    const root = join(folder, `${++roots}`);
    const store = new MemoryStore();
    const meter = metrics();
    const log = eventLog({ root });
    const graph = new StateGraph<Data>({
      observer: (told) => {
        meter.onEvent(told);
        log.onEvent(told);
      },
      checkpoint: { store, interval: 1, preserve: true },
    })
      .addNode("ask", async (_state, context) => {
        await context.once("draft", () => context.ledger.usage({ inputTokens: 100 }));
        const n = (await context.pause("ok", { reason: "check", ask: "n?" })) as number;
        context.ledger.usage({ inputTokens: 10 });
        return { n };
      })
      .setEntryPoint("ask")
      .setExitPoint("ask");
    const told = async (): Promise<(number | undefined)[]> => {
      const both = await report("r", { store, log: { root } });
      const logged = await report("r", { log: { root } });
      return [
        both.totals.usage.inputTokens,
        logged.totals.usage.inputTokens,
        meter.snapshot().usage.inputTokens,
        both.steps[0]?.usage?.inputTokens,
        both.repeated.usage.inputTokens,
      ];
    };

    const { status } = await graph.execute(State.create({ n: 0 }, { runId: "r" }));
    expect([status, ...(await told())]).toEqual(["paused", 100, 100, 100, undefined, 0]);
    await graph.resume("r", { input: 1 });
    expect(await told()).toEqual([110, 110, 110, 110, 0]);

    await graph.execute(State.create({ n: 0 }, { runId: "s" }));
    await store.delete("s");
    // The same run from the start: its usage before the pause is lost.
    await graph.execute(State.create({ n: 0 }, { runId: "s" }));
    const again = await report("s", { store, log: { root } });
    expect([again.totals.usage.inputTokens, again.repeated.usage.inputTokens]).toEqual([100, 100]);
  });

  test("from a store alone has what the checkpoints contain", async () => {
    const { store, start } = setting();
    await start();
    const told = await report("r", { store });
    expect(told).toMatchObject({ status: "completed", completedSteps: 5, resumes: 0 });
    expect(told.startedAt).toBeDefined();
    expect(told.steps.map(({ step, node }) => [step, node])).toEqual([
      [1, "tick"],
      [2, "tick"],
      [3, "tick"],
      [4, "tick"],
      [5, "end"],
    ]);
    expect(told.steps[0]).toMatchObject({
      saved: true,
      durationMs: expect.any(Number),
      usage: { inputTokens: 10 },
    });

    const few = setting(2);
    await few.start();
    const kept = await report("r", { store: few.store });
    // The newest checkpoint has steps whose own checkpoints are gone.
    expect(kept.startedAt).toBeDefined();
    expect(kept.elapsedMs).toBeGreaterThanOrEqual(0);
    expect(kept.steps.map((step) => step.step)).toEqual([1, 2, 3, 4, 5]);
    expect(toTable(kept)).toContain("steps    5");
    expect((await report("r", { store: few.store, log: few.log })).steps).toHaveLength(5);
  });

  test("of one checkpoint has what the run had done by then", async () => {
    const { store, graph, fault, start, log } = setting();
    Object.assign(fault, { at: 3, times: 2 });
    await start().catch(() => {});
    await graph.resume("r");
    const failed = (await store.history("r")).find(({ reason }) => reason === "failure");
    const { checkpointId = "" } = failed ?? {};
    for (const options of [{ store }, { store, log }]) {
      const then = await report("r", { ...options, checkpointId });
      expect(then).toMatchObject({ status: "failed", resumes: 0, completedSteps: 3 });
      expect(then.steps.map(({ step }) => step)).toEqual([1, 2, 3]);
      expect(then).toMatchObject({ nextStep: "tick", totals: { usage: { inputTokens: 50 } } });
      expect(await report("r", { ...options, step: 1 })).toMatchObject({ completedSteps: 1 });
      expect(await report("r", options)).toMatchObject({ status: "completed", resumes: 1 });
    }
    await rejection(report("r", { store, step: 99 }), CheckpointNotFoundError);
    await rejection(report("r", { log, step: 1 }), ConfigError);
    await rejection(report("r", { store, step: -1 }), ConfigError);
  });

  test("of a run whose checkpoints are gone comes from its log", async () => {
    const { store, start, log } = setting(5, false);
    await start();
    expect(await report("r", { store, log })).toMatchObject({
      status: "completed",
      graph: "count",
      completedSteps: 5,
      lastStep: "end",
      totals: { usage: { inputTokens: 40, costUsd: 0.04 } },
    });
  });

  test("of a run that started over has only what happened since", async () => {
    const { store, start, log } = setting();
    await start();
    await store.delete("r");
    await start();
    const told = await report("r", { store, log });
    expect(told.steps).toHaveLength(5);
    expect(told.repeated).toMatchObject({ visits: 5, usage: { inputTokens: 40 } });
  });

  test("ignores what other programs have written to the log", async () => {
    const { root, store, start, log } = setting();
    await start();
    const line = { ts: "2020", step_id: "", parent_id: "", node: "", run: "r" };
    for (const more of [
      { event: "node.complete", usage: { x: "many" }, step: -1 },
      { event: "checkpoint.save" },
      { event: "my.event" },
      { event: "node.start" },
      { event: "decision", description: 3 },
      { event: "node.complete", node: "x", step: 9 },
    ]) {
      appendFileSync(join(root, "r", "events.jsonl"), `${JSON.stringify({ ...line, ...more })}\n`);
    }
    appendFileSync(join(root, "r", "events.jsonl"), "null\n[]\n{}\n");
    expect((await report("r", { store, log })).totals.usage.inputTokens).toBe(40);
    expect((await report("r", { log })).status).toBe("completed");
  });

  test("of a running, paused or cancelled run has the next step", async () => {
    const { store, graph, log, fault } = setting();
    const stop = new AbortController();
    graph.on("node.complete", ({ data }) => {
      if (data.step === 2) stop.abort();
    });
    const state = State.create({ n: 0 }, { runId: "r" });
    await graph.execute(state, { signal: stop.signal }).catch(() => {});
    const cancelled = { status: "in_progress", completedSteps: 2, nextStep: "tick" };
    expect(await report("r", { store, log })).toMatchObject(cancelled);
    expect(await report("r", { log })).toMatchObject(cancelled);
    expect(fault.times).toBe(0);

    const other = setting();
    const asking = new StateGraph<Data>({
      observer: eventLog({ root: other.root }),
      checkpoint: { store: other.store, interval: 1, preserve: true },
    })
      .addNode("ask", async (_state, context) => {
        context.ledger.agent("atlas", { status: "waits", confidence: 0.4 });
        context.ledger.decision({ description: "ask", rationale: "unsure", confidence: 0.5 });
        return { n: Number(await context.pause("number", { reason: "which?", ask: "a number" })) };
      })
      .setEntryPoint("ask")
      .setExitPoint("ask");
    await asking.execute(State.create({ n: 0 }, { runId: "r" }));
    expect(await report("r", { store: other.store, log: other.log })).toMatchObject({
      status: "paused",
      nextStep: "ask",
      lastStep: undefined,
      confidence: 0.4,
      agents: { atlas: { status: "waits" } },
    });
    expect(await report("r", { store: other.store })).toMatchObject({ nextStep: "ask" });
    expect(await report("r", { log: other.log })).toMatchObject({
      status: "paused",
      nextStep: "ask",
    });
  });

  test("rejects if the store can't be read", async () => {
    const { store } = setting();
    const broken = Object.assign(Object.create(store) as MemoryStore, {
      load: () => Promise.reject(new Error("disk")),
    });
    await expect(report("r", { store: broken })).rejects.toThrow("disk");
  });

  test("uses the step of a checkpoint that the log does not have", async () => {
    const { root, store, start, graph } = setting();
    await start();
    // The log began after the first half of the run.
    const path = join(folder, `late-${roots}.jsonl`);
    const late = eventLog({ path, filter: ({ type }) => type !== "checkpoint.save" });
    graph.on("*", (event) => late.onEvent(event));
    await graph.resume("r", { step: 2 });
    await graph.resume("r", { step: 4 });
    await late.close();
    const told = await report("r", { store, log: { path } });
    expect(told).toMatchObject({ status: "completed", resumes: 2, repeated: { visits: 1 } });
    expect(told.steps.map((step) => step.step)).toEqual([1, 2, 3, 4, 5]);
    expect(told.steps.every((step) => step.saved)).toBe(true);
    expect(root).toBeDefined();
  });

  test("rejects if neither store nor log has the run", async () => {
    const { store, log } = setting();
    await expect(report("r", { store, log })).rejects.toThrow('run "r" has no checkpoint');
    await expect(report("r", {})).rejects.toThrow("options must have a store, a log, or both");
    await expect(report("r", { log: {} as never })).rejects.toThrow(
      "options.log must have either a root or a path",
    );
    await expect(report("", { store })).rejects.toThrow("runId must be");
  });
});

describe("a report as text", () => {
  test("is a table", async () => {
    const { store, fault, start, log } = setting();
    Object.assign(fault, { at: 1, times: 2 });
    await start().catch(() => {});
    const told = await report("r", { store, log });
    const table = toTable({
      ...told,
      elapsedMs: 3_725_000,
      steps: told.steps.map((step) => ({ ...step, saved: false, durationMs: 61_000 })),
      repeated: { ...told.repeated, visits: 2 },
    });
    const hostile = { name: "E", message: "a\u001b[2J\nb\u2028c", node: "x" };
    expect(toTable({ ...told, error: hostile })).toContain("E in x: a [2J b c\n");
    const lines = table.split("\n");
    expect(lines).toContain("status    failed");
    expect(lines).toContain("elapsed   1 h 2 min");
    expect(lines).toContain("error     TypeError in tick: no | luck");
    expect(lines).toContain("usage     30 tokens (30 in, 0 out), $0.03");
    expect(lines).toContain("*         not saved, runs again on resume");
    expect(lines.at(-2)).toMatch(
      /^ # {2}node {2}completed +worked +attempts +tokens in +out +cost +outputs$/,
    );
    expect(lines.at(-1)).toMatch(/^1\* {2}tick {2}\S+ +1 min 1 s +1 +10 +0 +\$0\.01$/);
  });

  test("is Markdown that no name or message can break", async () => {
    const { store, start, log } = setting();
    await start();
    const told = await report("r", { store, log });
    const markdown = toMarkdown({
      ...told,
      graph: "<script>|",
      nextStep: "a\n# b",
      error: { name: "E", message: "</td>\n```", node: "x" },
      decisions: [
        { node: "n", step: 0, timestamp: "t", description: "go <b>", rationale: "| because" },
        { node: "n", step: 0, timestamp: "t", description: "stay" },
      ],
      steps: told.steps.map((step) => ({ ...step, durationMs: 1234, node: "x | y\n<i>" })),
    });
    const html = new MarkdownIt({ html: true }).render(markdown);
    expect(html.match(/<h1>/g)).toHaveLength(1);
    expect(html.match(/<tr>/g)).toHaveLength(6);
    expect(html.match(/<td/g)).toHaveLength(5 * 9);
    expect(html).not.toMatch(/<(script|b|i|pre)>/);
    expect(html).toContain("<td>1.2 s</td>");
    const quiet = toMarkdown({
      ...told,
      decisions: [],
      totals: {
        ...told.totals,
        usage: { ...told.totals.usage, costUsd: 0.001, counters: { calls: 3 } },
      },
    });
    expect(quiet).toContain("usage: 40 tokens (40 in, 0 out), $0.001, 3 calls");
    expect(quiet).not.toContain("Decisions");
    expect(html).toContain("go &lt;b&gt;: | because");
  });
});
