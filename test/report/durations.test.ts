import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readEventLog } from "../../src/observers/event-log.js";
import { report } from "../../src/report/index.js";
import { openStore, parseAddress } from "../../src/stores/address.js";
import { json } from "../cli/harness.js";
import { bundle, removeBundle } from "../crash/bundle.js";

let built: Awaited<ReturnType<typeof bundle>>;
beforeAll(async () => {
  const outside = ["libsql", "better-sqlite3", "@electric-sql/pglite", "pg"];
  built = await bundle("life", join(import.meta.dirname, "fixtures"), outside);
});
afterAll(() => removeBundle(built));

/** What each process does: three are killed, one fails, one is killed after that, one pauses, one of another commit completes. */
const lives = [
  ["in 1", "c1"],
  ["done 2", "c1"],
  ["saved 3", "c1"],
  ["fail", "c1"],
  ["in 4", "c1"],
  ["", "c1"],
  ["answer", "c2"],
] as const;

/** Clocks are read at different places, and rounded. */
const ROUNDING = 3;

test.each(["file", "sqlite", "pglite"])(
  "the record of a run in %s agrees with a stopwatch, however often it was stopped",
  async (kind) => {
    const root = mkdtempSync(join(built.folder, `${kind}-`));
    const processes = lives.map(([where, commit]) => {
      const began = Date.now();
      const child = spawnSync(process.execPath, [built.script, kind, root, where, commit]);
      expect([where, child.stderr.toString()]).toEqual([where, ""]);
      expect([where, child.signal]).toEqual([
        where,
        /^(in|done|saved)/.test(where) ? "SIGKILL" : null,
      ]);
      return { began, ended: Date.now() };
    });
    const truth = readFileSync(join(root, "truth.txt"), "utf8")
      .trim()
      .split("\n")
      .map((line) => {
        const [what, node, step, time] = line.split(" ");
        return { what, node, step: Number(step), time: Number(time) };
      });
    const address = `${kind}:${{ file: root, sqlite: join(root, "runs.db") }[kind] ?? join(root, "pg")}`;
    const parsed = parseAddress(address);
    if (parsed === undefined) throw new Error(address);
    const store = await openStore(parsed, {});

    const nodes = ["plan", "search", "search", "search", "write"];
    const state = await store.load<{ done: string[] }>("r");
    expect(state).toMatchObject({ status: "completed", phase: "make", resumes: 6, crashes: 4 });
    expect(state.data.done).toEqual(nodes);
    expect(state.metadata).toEqual({ commit: "c2" });
    const isIn = (time: string, life: number): boolean =>
      Date.parse(time) >= (processes[life]?.began ?? 0) &&
      Date.parse(time) <= (processes[life]?.ended ?? 0);
    expect([isIn(state.startedAt, 0), isIn(state.savedAt, 6)]).toEqual([true, true]);

    // Each step began before its last visit and ended after it, and worked as long as its visits that count.
    expect(state.steps.map(({ node }) => node)).toEqual(nodes);
    expect(state.steps.map(({ restarts = 0 }) => restarts)).toEqual([0, 1, 1, 0, 2]);
    expect(state.steps.map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1, 2]);
    for (const [at, { startedAt, completedAt, durationMs }] of state.steps.entries()) {
      const visits = truth.filter(({ step }) => step === at);
      const begin = visits.findLast(({ what }) => what === "begin")?.time ?? 0;
      const end = visits.findLast(({ what }) => what === "end")?.time ?? 0;
      expect(Date.parse(startedAt)).toBeLessThanOrEqual(begin);
      expect(Date.parse(completedAt)).toBeGreaterThanOrEqual(end);
      const holds = visits.filter((visit, index) => {
        const next = visits[index + 1];
        return visit.what === "begin" && next?.what === "end" && (at === 4 || next.time === end);
      });
      const worked = holds.reduce((sum, visit) => {
        const next = visits[visits.indexOf(visit) + 1];
        return sum + (next?.time ?? 0) - visit.time;
      }, 0);
      expect(durationMs).toBeGreaterThanOrEqual(worked - ROUNDING * holds.length);
    }
    const lived = processes.reduce((sum, { began, ended }) => sum + ended - began, 0);
    const worked = state.steps.reduce((sum, { durationMs }) => sum + durationMs, 0);
    expect(worked).toBeLessThanOrEqual(lived);
    expect(state.totals).toMatchObject({
      plan: { visits: 1, attempts: 1 },
      search: { visits: 3, attempts: 3 },
      write: { visits: 1, attempts: 2 },
    });

    // The report is the same with and without a log, except for lost work.
    const known = {
      status: "completed",
      resumes: 6,
      crashes: 4,
      completedSteps: 5,
      totals: { durationMs: worked, usage: state.ledger.usage },
      metadata: { commit: "c2" },
      error: undefined,
    };
    const alone = await report("r", { store });
    expect(alone).toMatchObject(known);
    expect(alone.elapsedMs).toBe(Date.parse(state.savedAt) - Date.parse(state.startedAt));
    expect(alone.elapsedMs).toBeGreaterThanOrEqual(
      (truth.at(-1)?.time ?? 0) - (truth[0]?.time ?? 0),
    );
    const logged = await report("r", { store, log: { root } });
    expect(logged).toMatchObject({
      ...known,
      repeated: { visits: 3, usage: { inputTokens: 307 } },
    });
    expect(logged.steps).toEqual(alone.steps);

    // So are the log, the history and the list.
    const begun: string[] = [];
    for await (const line of readEventLog({ root }, "r")) {
      if (line.event === "node.start") begun.push(`${line.node} ${line.step}`);
    }
    expect(begun).toEqual(
      truth.flatMap(({ what, node, step }) => (what === "begin" ? `${node} ${step}` : [])),
    );
    const history = await store.history?.("r");
    expect(history?.map(({ metadata }) => metadata.commit)).toContain("c1");
    expect(history?.[0]).toMatchObject({ status: "completed", metadata: { commit: "c2" } });
    expect(history?.find(({ status }) => status === "failed")).toMatchObject({ node: "search" });
    await store.close?.();
    const list = await json(root, "list", "--store", address, "--where", "commit=c2");
    const { startedAt, savedAt } = state;
    const { elapsedMs } = alone;
    expect(list).toMatchObject([
      { runId: "r", status: "completed", startedAt, savedAt, elapsedMs },
    ]);
  },
);
