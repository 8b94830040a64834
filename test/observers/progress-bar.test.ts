import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { progressBar } from "../../src/observers/progress-bar.js";
import { type FakeClock, useFakeClock } from "../../src/testing/fake-clock.js";
import { event } from "./events.js";

let clock: FakeClock;
beforeEach(() => {
  clock = useFakeClock(1_000_000);
});
afterEach(() => clock.restore());

function terminal(columns?: number) {
  const written: string[] = [];
  const stream = { isTTY: true, columns, write: (text: string) => written.push(text) };
  return { stream, written };
}

const start = (runId: string) =>
  event("graph.start", runId, { entryPoint: "a", step: 0, resumed: false });
const nodeStart = (runId: string, node: string, step: number) =>
  event("node.start", runId, { node, step });

describe("a progress bar", () => {
  test("shows node, steps, time and cost, and ends with a line", async () => {
    const { stream, written } = terminal();
    const bar = progressBar({ stream, total: 4 });
    bar.onEvent(start("r"));
    bar.onEvent(nodeStart("r", "draft", 0));
    await clock.advance(1500);
    const usage = { inputTokens: 1200, outputTokens: 34, costUsd: 0.5 };
    bar.onEvent(event("node.complete", "r", { node: "draft", step: 1, durationMs: 1, usage }));
    bar.onEvent(event("graph.complete", "r", { exitPoint: "draft", step: 4 }));
    expect(written).toEqual([
      "\r\u001b[2K░░░░░░░░░░░░░░░░░░░░  test  draft  0/4  0.0 s",
      "\r\u001b[2K█████░░░░░░░░░░░░░░░  test  draft  1/4  1.5 s  1,234 tokens  $0.50",
      "\r\u001b[2K✓  test  completed  4/4  1.5 s  1,234 tokens  $0.50\n",
    ]);
  });

  test("does not redraw for every event, and shows how many other runs there are", async () => {
    const { stream, written } = terminal();
    const bar = progressBar({ stream });
    for (const run of ["a", "b", "c"]) bar.onEvent(start(run));
    for (let step = 0; step < 100; step++) bar.onEvent(nodeStart("a", "n", step));
    await clock.advance(60);
    bar.onEvent(nodeStart("b", "m", 7));
    await clock.advance(60);
    expect(written).toEqual([
      "\r\u001b[2Ktest  n  (+2)  step 0  0.0 s",
      "\r\u001b[2Ktest  n  (+2)  step 99  0.1 s",
      "\r\u001b[2Ktest  m  (+2)  step 7  0.1 s",
    ]);
  });

  test("can be cleared for a line, and is redrawn below it", async () => {
    const { stream, written } = terminal(0);
    const bar = progressBar({ stream });
    bar.clear();
    bar.onEvent(start("a"));
    bar.onEvent(nodeStart("a", "n", 0));
    bar.clear();
    await clock.advance(60);
    bar.clear();
    bar.onEvent(event("graph.complete", "a", { exitPoint: "n", step: 1 }));
    bar.clear();
    await clock.advance(60);
    expect(written.map((line) => line.slice(5))).toEqual([
      "test  n  step 0  0.0 s",
      "",
      "test  n  step 0  0.1 s",
      "",
      "✓  test  completed  step 1  0.1 s\n",
    ]);
  });

  test("shows how a run ended", () => {
    const { stream, written } = terminal();
    const bar = progressBar({ stream });
    bar.onEvent(start("a"));
    const usage = { inputTokens: 1, costUsd: 0.001 };
    bar.onEvent(event("graph.pause", "a", { node: "ask", step: 2, reason: "x", usage }));
    bar.onEvent(start("c"));
    bar.onEvent(event("node.complete", "c", { node: "n", step: 1, durationMs: 1, usage }));
    bar.onEvent(event("graph.complete", "c", { exitPoint: "n", step: 1 }));
    bar.onEvent(start("b"));
    bar.onEvent(event("graph.fail", "b", { node: "n", step: 1, code: "NODE_FAILED", error: "e" }));
    bar.onEvent(event("graph.complete", "unknown", { exitPoint: "n", step: 1 }));
    bar.onEvent(nodeStart("unknown", "n", 1));
    expect(written.map((line) => line.slice(5))).toEqual([
      "⏸  test  paused at ask  step 2  0.0 s  1 tokens  $0.0010\n",
      "test  n  step 1  0.0 s  1 tokens  $0.0010",
      "✓  test  completed  step 1  0.0 s  1 tokens  $0.0010\n",
      "✗  test  failed at n  step 1  0.0 s\n",
    ]);
  });

  test("names can't move the cursor, and lines are cut to the terminal", async () => {
    const { stream, written } = terminal(20);
    const bar = progressBar({ stream });
    bar.onEvent(start("a"));
    await clock.advance(60);
    bar.onEvent(nodeStart("a", "x\u001b[2J\n\u009b".repeat(10), 0));
    expect(written[0]?.slice(5)).toBe("test  x [2J  x [2J ");
  });

  test("writes nothing without a terminal", () => {
    const written: string[] = [];
    const bar = progressBar({ stream: { write: (text: string) => written.push(text) } });
    bar.onEvent(start("a"));
    bar.onEvent(nodeStart("a", "n", 0));
    expect(written).toEqual([]);
    expect(() => progressBar({ total: 0 })).toThrow("progressBar.total must be an integer");
    expect(() => progressBar({ stream: null as never })).toThrow(
      "progressBar.stream must be a stream",
    );
    progressBar();
  });
});

describe("a progress bar of many runs", () => {
  test("ignores graphs inside nodes, and unknown runs", async () => {
    const { stream, written } = terminal();
    const bar = progressBar({ stream });
    bar.onEvent(start("outer"));
    bar.onEvent({ ...start("inner"), rootRunId: "outer", path: ["n"] });
    bar.onEvent({ ...nodeStart("inner", "deep", 1), rootRunId: "outer", path: ["n"] });
    bar.onEvent(nodeStart("unknown", "n", 1));
    bar.onEvent(event("graph.pause", "unknown", { node: "n", step: 1, reason: "", usage: {} }));
    bar.onEvent(event("checkpoint.delete", "outer", { node: "n", step: 1 }));
    await clock.advance(1000);
    expect(written).toEqual([]);
    bar.onEvent(nodeStart("outer", "n", 1));
    expect(written).toEqual(["\r\u001b[2Ktest  n  step 1  1.0 s"]);
  });

  test("forgets the oldest of more than a thousand", () => {
    const { stream, written } = terminal();
    const bar = progressBar({ stream });
    for (let run = 0; run <= 1000; run++) bar.onEvent(start(`r${run}`));
    bar.onEvent(nodeStart("r0", "n", 1));
    expect(written).toEqual([]);
    bar.onEvent(nodeStart("r1", "n", 1));
    expect(written).toEqual(["\r\u001b[2Ktest  n  (+999)  step 1  0.0 s"]);
  });
});
