import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readEventLog } from "../../src/observers/event-log.js";
import { report } from "../../src/report/index.js";
import { FileStore } from "../../src/stores/file.js";
import { bundle } from "../observers/bundle.js";

const folder = mkdtempSync(join(tmpdir(), "waymark-killed-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let script = "";
beforeAll(async () => {
  script = await bundle(join(import.meta.dirname, "fixtures/job.ts"), folder);
});

/** Runs the job until it is killed at the given place, or to its end. */
function run(root: string, where = ""): string | number | null {
  const child = spawnSync(process.execPath, [script, root, where]);
  expect(child.stderr.toString()).toBe("");
  return child.signal ?? child.status;
}

describe("a run that is killed and resumed three times", () => {
  test.each([
    [["in 0", "in 0", "in 0"], { visits: 3, usage: { inputTokens: 300 } }],
    [
      ["done 4", "done 4", "done 4"],
      { visits: 3, usage: { inputTokens: 312, counters: { calls: 3 } } },
    ],
    [["saved -1", "saved 0", "saved 2"], { visits: 0, usage: { inputTokens: 0 } }],
  ])("at %j: log, progress, ledger and report agree with what happened", async (places, lost) => {
    const root = mkdtempSync(join(folder, "run-"));
    const store = new FileStore({ root });
    for (const [index, place] of places.entries()) {
      expect(run(root, place)).toBe("SIGKILL");
      const now = await report("job-1", { store, log: { root } });
      expect(now.status).toBe("in_progress");
      expect(now.resumes).toBe(index);
      expect(now.steps.filter((step) => step.saved)).toHaveLength(now.completedSteps);
    }
    expect(run(root)).toBe(0);

    const truth = readFileSync(join(root, "truth.txt"), "utf8").trim().split("\n");
    const lines = [];
    for await (const line of readEventLog({ root }, "job-1")) lines.push(line);
    const started = lines.filter((line) => line.event === "node.start");
    expect(started.map((line) => `${line.node} ${line.step}`)).toEqual(truth);

    const nodes = ["plan", "search", "search", "search", "write"];
    const state = await store.load<{ done: string[] }>("job-1");
    expect(state.data.done).toEqual(nodes);
    expect(state.ledger.usage).toEqual({
      inputTokens: 510,
      outputTokens: 50,
      costUsd: 0.5,
      memoryPeakMb: 0,
      counters: { calls: 5 },
      peaks: {},
    });

    const told = await report("job-1", { store, log: { root } });
    expect(told).toMatchObject({
      graph: "job",
      status: "completed",
      resumes: 3,
      completedSteps: 5,
      lastStep: "write",
      nextStep: undefined,
      error: undefined,
      confidence: 0.9,
      repeated: lost,
    });
    expect(told.totals.usage).toEqual(state.ledger.usage);
    expect(told.decisions.map((one) => one.description)).toEqual(nodes.map((node) => `do ${node}`));
    expect(told.steps.map((step) => [step.step, step.node, step.saved, step.attempts])).toEqual(
      nodes.map((node, index) => [index + 1, node, true, 1]),
    );
    expect(told.steps.map((step) => step.usage?.inputTokens)).toEqual([100, 101, 102, 103, 104]);
    expect(told.steps.flatMap((step) => Object.keys(step.outputs))).toEqual(
      nodes.map((_, index) => `file-${index}`),
    );
    expect(told.startedAt).toBe(state.startedAt);
    expect(told.updatedAt).toBe(lines.at(-1)?.ts);

    // The log alone gives the same report, except for what only the ledger has.
    const logOnly = await report("job-1", { log: { root } });
    const { startedAt, elapsedMs, crashes, config } = told;
    const rest = { steps: [], decisions: [], startedAt, elapsedMs, crashes, config };
    expect({ ...logOnly, ...rest }).toEqual({ ...told, ...rest });
    expect(logOnly.decisions.map((one) => one.description)).toEqual(
      nodes.map((node) => `do ${node}`),
    );
    const inBoth = told.steps.map(
      ({ restarts: _restarts, startedAt: _startedAt, ...step }) => step,
    );
    expect(logOnly.steps).toMatchObject(inBoth.map((step) => ({ ...step, outputs: {} })));
    expect(told.steps.map(({ restarts = 0 }) => restarts).reduce((sum, n) => sum + n)).toBe(3);

    // The checkpoint alone gives the same report, except for lost work.
    const { repeated, updatedAt, elapsedMs: _elapsedMs, ...known } = told;
    const storeOnly = await report("job-1", { store });
    expect(storeOnly).toMatchObject(known);
    expect(storeOnly.repeated.visits).toBe(3);
    expect(storeOnly.updatedAt <= updatedAt && repeated.visits <= 3).toBe(true);

    const progress = readFileSync(join(root, "job-1", "progress.md"), "utf8");
    const titles = [...progress.matchAll(/^## (.*)$/gm)].map((match) => match[1]);
    expect(titles).toEqual(nodes.map((node, index) => `Part ${index} by ${node}`));
  });
});
