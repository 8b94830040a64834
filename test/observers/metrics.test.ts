import { afterEach, describe, expect, test } from "vitest";
import { type AnyEvent, MemoryStore, State, StateGraph } from "../../src/index.js";
import { Histogram } from "../../src/observers/histogram.js";
import { StorageUse } from "../../src/observers/metrics/storage.js";
import { metrics } from "../../src/observers/metrics.js";
import { useFakeClock } from "../../src/testing/fake-clock.js";
import { event } from "./events.js";

let back = (): void => {};
afterEach(() => back());

const save = (runId: string, bytes?: number, durationMs = 3): AnyEvent =>
  event("checkpoint.save", runId, {
    node: "n",
    step: 1,
    sequence: 1,
    checkpointId: "c",
    reason: "interval",
    durationMs,
    ...(bytes !== undefined && { bytes }),
  });
const start = (runId: string, resumed: boolean): AnyEvent =>
  event("graph.start", runId, { entryPoint: "n", step: 0, resumed });
const resume = (runId: string): AnyEvent =>
  event("checkpoint.resume", runId, { node: "n", step: 1, resumeNode: "n" });
const complete = (runId: string): AnyEvent =>
  event("graph.complete", runId, { exitPoint: "n", step: 1 });
const fail = (runId: string): AnyEvent =>
  event("graph.fail", runId, { node: "n", step: 1, code: "NODE_FAILED", error: "x" });

describe("a snapshot", () => {
  test("counts what graphs do", async () => {
    const meter = metrics();
    let failures = 2;
    const graph = new StateGraph<{ n: number }>({
      name: "g",
      observer: meter,
      checkpoint: { store: new MemoryStore(), interval: 1 },
    })
      .addNode(
        "flaky",
        (state, context) => {
          context.ledger.usage({ inputTokens: 10, costUsd: 0.1, counters: { calls: 1 } });
          if (failures-- > 0) throw new Error("again");
          return { n: state.data.n + 1 };
        },
        { retry: { maxAttempts: 2, initialInterval: 0 } },
      )
      .addNode("end", (state) => state)
      .addEdge("flaky", "end")
      .setEntryPoint("flaky")
      .setExitPoint("end");
    await graph.execute(State.create({ n: 0 }, { runId: "r" })).catch(() => {});
    await graph.resume("r");
    const shot = meter.snapshot();
    expect(shot.runs).toEqual({
      started: 1,
      resumed: 1,
      completed: 1,
      failed: 1,
      paused: 0,
      active: 0,
    });
    expect(shot.recovery).toEqual({ attempts: 1, succeeded: 1, failed: 0, successRate: 1 });
    expect(shot.nodes).toMatchObject([
      { graph: "g", node: "flaky", completed: 1, failed: 1, retries: 1, durationMs: { count: 2 } },
      { graph: "g", node: "end", completed: 1, failed: 0, retries: 0 },
    ]);
    expect(shot.checkpoints).toMatchObject({ loads: 1, deletes: 1, errors: 0 });
    expect(shot.checkpoints.saves).toBeGreaterThan(2);
    expect(shot.checkpoints.savesPerMinute).toBe(shot.checkpoints.saves);
    expect(shot.usage).toMatchObject({ inputTokens: 30, costUsd: 0.3, counters: { calls: 3 } });
    expect(shot.events).toBeGreaterThan(10);
  });

  test("the success rate counts resumes, not runs", () => {
    const meter = metrics();
    expect(meter.snapshot().recovery.successRate).toBeUndefined();
    for (const one of [start("a", false), fail("a"), start("a", true), resume("a"), fail("a")])
      meter.onEvent(one);
    for (const one of [start("a", true), resume("a"), complete("a"), complete("b")])
      meter.onEvent(one);
    meter.onEvent(resume("p"));
    meter.onEvent(event("graph.pause", "p", { node: "n", step: 1, reason: "x" }));
    meter.onEvent(event("checkpoint.error", "z", { action: "load", node: "", error: "corrupt" }));
    meter.onEvent(event("checkpoint.error", "z", { action: "save", node: "", error: "full" }));
    meter.onEvent(event("checkpoint.quarantine", "z", { file: "f", expected: "a", actual: "b" }));
    const { recovery, checkpoints } = meter.snapshot();
    expect(recovery).toEqual({ attempts: 4, succeeded: 2, failed: 2, successRate: 0.5 });
    expect(checkpoints).toMatchObject({ errors: 2, quarantined: 1 });
  });

  test("storage in use is the size of the kept checkpoints", () => {
    const meter = metrics({ keep: 2 });
    for (const bytes of [100, 200, 300]) meter.onEvent(save("a", bytes));
    meter.onEvent(save("b", 50));
    meter.onEvent(save("b"));
    expect(meter.snapshot().storage).toEqual({ bytesWritten: 650, bytesInUse: 550 });
    meter.onEvent(event("checkpoint.delete", "a", { node: "n", step: 1 }));
    meter.onEvent(event("checkpoint.delete", "unknown", { node: "n", step: 1 }));
    expect(meter.snapshot().storage).toEqual({ bytesWritten: 650, bytesInUse: 50 });
    expect(meter.snapshot().checkpoints.bytes).toMatchObject({ count: 4, min: 50, max: 300 });
  });

  test("counting a store that keeps everything takes no memory", () => {
    const use = new StorageUse(Number.POSITIVE_INFINITY, 10);
    const before = process.memoryUsage().heapUsed;
    for (let count = 0; count < 2_000_000; count++) use.save("a", 10);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(8 * 1024 * 1024);
    expect([use.written, use.inUse]).toEqual([20_000_000, 20_000_000]);
    use.delete("a");
    expect(use.inUse).toBe(0);
  });

  test("saves per minute cover the last minute", async () => {
    const clock = useFakeClock(1_000_000);
    back = clock.restore;
    const meter = metrics();
    for (let second = 0; second < 90; second++) {
      meter.onEvent(save("a"));
      await clock.advance(1000);
    }
    expect(meter.snapshot().checkpoints.savesPerMinute).toBe(59);
    await clock.advance(30_000);
    expect(meter.snapshot().checkpoints.savesPerMinute).toBe(29);
    await clock.advance(10 * 60_000);
    expect(meter.snapshot().checkpoints.savesPerMinute).toBe(0);
  });

  test("uses bounded memory, however many runs and nodes there are", () => {
    const meter = metrics({ maxNodes: 2, maxRuns: 2 });
    for (let run = 0; run < 100; run++) {
      const data = {
        node: `n${run}`,
        step: 1,
        durationMs: 1,
        usage: { counters: { [`c${run * 2}`]: 1 } },
      };
      meter.onEvent(event("node.complete", `r${run}`, data));
      meter.onEvent(save(`r${run}`, 10));
      meter.onEvent(resume(`r${run}`));
    }
    for (let run = 0; run < 100; run++) meter.onEvent(complete(`r${run}`));
    const shot = meter.snapshot();
    expect(shot.nodes.map(({ node, completed }) => [node, completed])).toEqual([
      ["n0", 1],
      ["n1", 1],
      ["(other)", 98],
    ]);
    expect(shot.storage).toEqual({ bytesWritten: 1000, bytesInUse: 1000 });
    expect(shot.recovery.succeeded).toBe(2);
    expect(Object.keys(shot.usage.counters).length).toBeLessThanOrEqual(100);
  });

  test.each([
    [{ maxNodes: 0 }, "metrics.maxNodes must be an integer ≥ 1"],
    [{ max: 1 }, "metrics.max is not an option"],
  ])("refuses %j", (options, message) => {
    expect(() => metrics(options as object)).toThrow(message);
  });
});

describe("a histogram", () => {
  test("estimates quantiles", () => {
    const histogram = new Histogram([10, 20, 50]);
    expect(histogram.snapshot()).toMatchObject({ count: 0, min: 0, max: 0, p50: 0, p99: 0 });
    for (let value = 1; value <= 100; value++) histogram.record(value);
    const shot = histogram.snapshot();
    expect(shot.buckets).toEqual([
      { le: 10, count: 10 },
      { le: 20, count: 20 },
      { le: 50, count: 50 },
      { le: Number.POSITIVE_INFINITY, count: 100 },
    ]);
    expect(shot).toMatchObject({
      count: 100,
      sum: 5050,
      min: 1,
      max: 100,
      p50: 50,
      p95: 95,
      p99: 99,
    });
  });
});

describe("the Prometheus text", () => {
  test("has HELP and TYPE for each metric, cumulative buckets and escaped labels", () => {
    const meter = metrics();
    meter.onEvent(start("a", false));
    meter.onEvent(save("a", 2000, 7));
    const data = { node: 'a "b"\\\n', step: 1, durationMs: 1500, usage: { costUsd: 0.25 } };
    meter.onEvent(event("node.complete", "a", data));
    meter.onEvent(event("checkpoint.error", "z", { action: "load", node: "", error: "x" }));
    expect(metrics().prometheus()).not.toContain("success_ratio");
    const lines = meter.prometheus().split("\n");
    expect(lines).toContain("waymark_runs_started_total 1");
    expect(lines).toContain("waymark_runs_active 1");
    expect(lines).toContain('waymark_usage_total{counter="costUsd"} 0.25');
    expect(lines).toContain("waymark_recovery_success_ratio 0");
    expect(lines).toContain('waymark_checkpoint_save_duration_seconds_bucket{le="0.005"} 0');
    expect(lines).toContain('waymark_checkpoint_save_duration_seconds_bucket{le="0.01"} 1');
    expect(lines).toContain('waymark_checkpoint_save_duration_seconds_bucket{le="+Inf"} 1');
    expect(lines).toContain("waymark_checkpoint_save_duration_seconds_sum 0.007");
    expect(lines).toContain("waymark_checkpoint_size_bytes_count 1");
    const node = 'graph="test",node="a \\"b\\"\\\\\\n"';
    expect(lines).toContain(`waymark_node_duration_seconds_bucket{${node},le="2.5"} 1`);
    expect(lines.at(-1)).toBe("");
    for (const line of lines.slice(0, -1)) {
      expect(line).toMatch(/^(# (HELP|TYPE) waymark_\w+ .+|waymark_\w+(\{.*\})? [\d.e+-]+)$/);
    }
  });
});

describe("rare events", () => {
  const complete = (runId: string, node: string, counters?: Record<string, number>): AnyEvent =>
    event("node.complete", runId, {
      node,
      step: 1,
      durationMs: 2,
      ...(counters !== undefined && { usage: { counters } }),
    });

  test("of a graph inside a node, only its nodes are counted", () => {
    const meter = metrics();
    const inside = (one: AnyEvent): AnyEvent => ({ ...one, rootRunId: "outer", path: ["n"] });
    meter.onEvent(start("outer", false));
    meter.onEvent(inside(start("inner", false)));
    const retry = { node: "deep", step: 0, attempt: 1, delayMs: 0, error: "again" };
    meter.onEvent(inside(event("node.retry", "inner", retry)));
    meter.onEvent(inside(complete("inner", "deep", { calls: 1 })));
    const { runs, nodes, usage } = meter.snapshot();
    expect(runs.started).toBe(1);
    expect(nodes).toMatchObject([{ node: "deep", completed: 1, retries: 1 }]);
    expect(usage.counters).toEqual({});
    // Without a known outer run it counts as a run.
    meter.onEvent({ ...start("alone", false), rootRunId: "unknown", path: ["n"] });
    expect(meter.snapshot().runs.started).toBe(2);
  });

  test("at most a hundred custom counters are tracked", () => {
    const meter = metrics();
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`c${at}`, 1]));
    meter.onEvent(complete("r", "n", many));
    meter.onEvent(complete("r", "n", { another: 1 }));
    expect(Object.keys(meter.snapshot().usage.counters)).toHaveLength(100);
    meter.onEvent(complete("r", "n", { c0: 1 }));
    expect(meter.snapshot().usage.counters).toMatchObject({ c0: 2 });
  });

  test("warnings and the inputs of the last adaptive save are counted", () => {
    const meter = metrics();
    expect(meter.prometheus()).not.toContain("waymark_checkpoint_adaptive_seconds");
    const adaptive = { unsavedMs: 1500, intervalMs: 1000, saveMs: 20, failureMs: 60_000 };
    const saved = save("r");
    meter.onEvent({ ...saved, data: { ...saved.data, adaptive } } as AnyEvent);
    meter.onEvent({ ...saved, type: "checkpoint.warning", data: {} } as unknown as AnyEvent);
    expect(meter.snapshot().checkpoints).toMatchObject({ adaptive, warnings: 1 });
    expect(meter.prometheus()).toContain(
      'waymark_checkpoint_adaptive_seconds{input="unsaved"} 1.5',
    );
  });
});
