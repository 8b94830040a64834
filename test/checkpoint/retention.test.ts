import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError, type Retention, type RunFilter, type RunSummary } from "waymark";
import { type FakeClock, useFakeClock } from "waymark/testing";
import {
  checkFilter,
  checkRetention,
  filterRuns,
  type Keepable,
  kept,
  prunable,
} from "../../src/checkpoint/arguments.js";
import { thrown } from "../graphs.js";

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 0, 31);

/** A run that was last saved so many days ago; its last node says nothing of that. */
function run(
  runId: string,
  status: RunSummary["status"],
  daysAgo: number,
  more: Partial<RunSummary> = {},
): RunSummary {
  const savedAt = new Date(NOW - daysAgo * DAY).toISOString();
  const timestamp = new Date(NOW + daysAgo * DAY).toISOString();
  const place = { node: "n", nextNode: undefined, phase: "", step: 1 };
  const times = { startedAt: timestamp, savedAt, timestamp };
  return { runId, graph: "g", status, ...place, ...times, metadata: {}, ...more };
}

const runs = [
  run("old", "completed", 30),
  run("failed", "failed", 10, { metadata: { team: "docs", day: 1 } }),
  run("busy", "in_progress", 40, { metadata: { team: "docs", day: 2 } }),
  run("paused", "paused", 50, { graph: "h" }),
  run("waiting", "pending", 60),
  run("new", "completed", 1, { graph: "h" }),
];

const ids = (found: readonly RunSummary[]): string[] => found.map(({ runId }) => runId);

describe("which checkpoints are kept", () => {
  /** Checkpoints, newest first, as `step`, `step+` for a progress save, with `:phase`. */
  const entries = (...names: string[]) =>
    names.map((name) => {
      const [place = "", phase = ""] = name.split(":");
      return { name, step: Number.parseInt(place, 10), unfinished: place.endsWith("+"), phase };
    });
  const names = (found: readonly { readonly name: string }[]) => found.map(({ name }) => name);

  test.each<[what: string, history: string[], keep: number, left: string[]]>([
    ["the newest steps", ["4", "3", "2", "1", "0"], 2, ["4", "3"]],
    ["all, where there are fewer", ["1", "0"], 5, ["1", "0"]],
    ["of a step the newest", ["2", "2", "1", "1", "1", "0"], 2, ["2", "1"]],
    ["the newest progress save beside the steps", ["3+", "3+", "3", "2", "1"], 2, ["3+", "3", "2"]],
    ["no progress save of a node that completed", ["4", "3+", "3+", "3", "2"], 2, ["4", "3"]],
    ["a step again after a rollback", ["1", "3", "2", "1", "0"], 3, ["1", "3", "2"]],
    ["two of a run that is saved again in its only step", ["0", "0", "0"], 3, ["0", "0"]],
    ["two of a run that has no step yet", ["0+", "0+", "0+"], 3, ["0+", "0+"]],
    ["a progress save before the first step", ["0+", "0+", "0"], 2, ["0+", "0"]],
    [
      "everything",
      ["2+", "2+", "2", "1", "1"],
      Number.POSITIVE_INFINITY,
      ["2+", "2+", "2", "1", "1"],
    ],
  ])("%s", (_what, history, keep, left) => {
    expect(names(kept(entries(...history), { keep }))).toEqual(left);
  });

  test.each<[what: string, keepPerPhase: number, left: string[]]>([
    ["one of each", 1, ["7:c", "6:c", "4:b", "2:a"]],
    ["two of each", 2, ["7:c", "6:c", "4:b", "3:b", "2:a", "1:a"]],
  ])(
    "of each phase the newest beside those, %s, and of no phase none",
    (_what, keepPerPhase, left) => {
      const history = entries("7:c", "6:c", "5", "4:b", "3:b", "2:a", "1:a", "0");
      expect(names(kept(history, { keep: 2, keepPerPhase }))).toEqual(left);
    },
  );

  const history = fc.array(
    fc.record({
      step: fc.nat(12),
      unfinished: fc.boolean(),
      phase: fc.constantFrom("", "plan", "write"),
    }),
    { minLength: 1, maxLength: 40 },
  );
  const rule = fc.record({
    keep: fc.integer({ min: 2, max: 6 }),
    keepPerPhase: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  });
  const finished = (found: readonly Keepable[]) => found.filter(({ unfinished }) => !unfinished);
  const stepsOf = (found: readonly Keepable[]) => new Set(finished(found).map(({ step }) => step));

  test("never drops the newest, keeps the newest of each step, and at most `keep` steps and one progress save", () => {
    fc.assert(
      fc.property(history, fc.integer({ min: 2, max: 6 }), (all, keep) => {
        const left = kept(all, { keep });
        expect(left[0]).toBe(all[0]);
        expect(left.length).toBeLessThanOrEqual(keep + 1);
        expect(stepsOf(left).size).toBe(Math.min(keep, stepsOf(all).size));
        for (const known of stepsOf(left)) {
          const newest = finished(all).find(({ step }) => step === known);
          expect(left).toContain(newest);
        }
        if (stepsOf(all).size > 1) expect(finished(left)).toHaveLength(stepsOf(left).size);
      }),
    );
  });

  test("keeps two if there are two, so that there is one to fall back to", () => {
    fc.assert(
      fc.property(history, rule, (all, how) => {
        expect(kept(all, how).length).toBeGreaterThanOrEqual(Math.min(2, all.length));
      }),
    );
  });

  test("progress saves never push a step out, however many and wherever they are", () => {
    fc.assert(
      fc.property(history, rule, (all, how) => {
        fc.pre(stepsOf(all).size > 1);
        const left = kept(all, how);
        expect(finished(left)).toEqual(kept(finished(all), how));
        expect(left.filter(({ unfinished }) => unfinished)).toEqual(
          all[0]?.unfinished === true ? [all[0]] : [],
        );
      }),
    );
  });

  test("dropping at each save leaves the same as dropping at the end", () => {
    fc.assert(
      fc.property(history, fc.integer({ min: 2, max: 6 }), (all, keep) => {
        let left: Keepable[] = [];
        for (const entry of all.toReversed()) left = kept([entry, ...left], { keep });
        expect(left).toEqual(kept(all, { keep }));
      }),
    );
  });
});

describe("filtering runs", () => {
  test.each<[filter: RunFilter | undefined, found: string[]]>([
    [undefined, ["new", "failed", "old", "busy", "paused", "waiting"]],
    [{}, ["new", "failed", "old", "busy", "paused", "waiting"]],
    [{ status: "completed" }, ["new", "old"]],
    [{ status: ["failed", "paused"] }, ["failed", "paused"]],
    [{ status: [] }, []],
    [{ graph: "h" }, ["new", "paused"]],
    [{ graph: "h", status: "paused" }, ["paused"]],
    [{ graph: "nobody" }, []],
    [{ metadata: { team: "docs" } }, ["failed", "busy"]],
    [{ metadata: { team: "docs", day: 2 } }, ["busy"]],
    [{ metadata: { day: "2" } }, []],
    [{ metadata: { toString: "x" } }, []],
    [{ metadata: {} }, ["new", "failed", "old", "busy", "paused", "waiting"]],
    [{ limit: 2 }, ["new", "failed"]],
    [{ limit: 0 }, []],
    [{ limit: 99, status: "pending" }, ["waiting"]],
    [{ before: new Date(NOW - 30 * DAY).toISOString() }, ["busy", "paused", "waiting"]],
    [{ before: "2026-01-01T02:00:00+02:00" }, ["busy", "paused", "waiting"]],
    [{ cursor: run("busy", "in_progress", 40) }, ["paused", "waiting"]],
    [{ cursor: run("zzz", "completed", 40), limit: 1 }, ["busy"]],
  ])("%j", (filter, found) => {
    if (filter !== undefined) checkFilter(filter);
    expect(ids(filterRuns(runs, filter))).toEqual(found);
  });

  test("is stable for runs saved at the same time, and does not change the list", () => {
    const same = [run("a", "failed", 1), run("b", "failed", 1), run("c", "failed", 0)];
    expect(ids(filterRuns(same))).toEqual(["c", "b", "a"]);
    expect(ids(same)).toEqual(["a", "b", "c"]);
  });

  test.each([
    [{ status: "done" }, "filter.status"],
    [{ status: ["failed", "done"] }, "filter.status"],
    [{ graph: "" }, "filter.graph"],
    [{ limit: -1 }, "filter.limit"],
    [{ limit: "2" }, "filter.limit"],
    [{ state: "failed" }, "filter.state"],
    [{ before: "soon" }, "filter.before"],
    [{ metadata: [] }, "filter.metadata"],
    [{ metadata: { team: null } }, "filter.metadata.team"],
    [{ cursor: null }, "filter.cursor.savedAt"],
    [{ cursor: { savedAt: "2030-01-01T00:00:00.000Z" } }, "filter.cursor.runId"],
    [null, "filter"],
  ])("refuses %j", (filter, option) => {
    expect(thrown(() => checkFilter(filter as RunFilter), ConfigError).option).toBe(option);
  });
});

describe("which runs are old", () => {
  let clock: FakeClock;
  beforeEach(() => {
    clock = useFakeClock(NOW);
  });
  afterEach(() => clock.restore());

  /** The ids of all that a rule removes, in order. */
  async function removed(retention: Retention, all = runs): Promise<string[]> {
    const found: string[] = [];
    const list = async (filter: RunFilter) => filterRuns(all, filter);
    for await (const page of prunable(retention, list)) found.push(...ids(page));
    return found;
  }

  test.each<[retention: Retention, found: string[]]>([
    [{}, []],
    [{ maxAgeDays: 31 }, []],
    [{ maxAgeDays: 30 }, []],
    [{ maxAgeDays: 29.5 }, ["old"]],
    [{ maxAgeDays: 5 }, ["failed", "old"]],
    [{ maxAgeDays: 0 }, ["new", "failed", "old"]],
    [{ maxRuns: 3 }, []],
    [{ maxRuns: 1 }, ["failed", "old"]],
    [{ maxRuns: 0 }, ["new", "failed", "old"]],
    [{ maxRuns: 2, maxAgeDays: 5 }, ["failed", "old"]],
    [{ maxRuns: 1, dryRun: true }, ["failed", "old"]],
    [{ maxRuns: 0, includeAbandoned: true }, ["new", "failed", "old"]],
  ])("%j, and none that is not finished", async (retention, found) => {
    expect(await removed(retention)).toEqual(found);
  });

  test.each<[maxAgeDays: number, found: string[]]>([
    [45, ["paused", "waiting"]],
    [29.5, ["old", "busy", "paused", "waiting"]],
    [60, []],
  ])("those of %i days, also abandoned ones", async (maxAgeDays, found) => {
    expect(await removed({ maxAgeDays, includeAbandoned: true })).toEqual(found);
  });

  test("are found over many pages", async () => {
    const many = Array.from({ length: 450 }, (_, at) => {
      const status = at % 2 === 0 ? "completed" : "in_progress";
      return run(`r${at}`, status, 100 + (at % 7));
    });
    const all = [...many, run("fresh", "completed", 1), run("live", "in_progress", 1)];
    const found = await removed({ maxAgeDays: 30, includeAbandoned: true }, all);
    expect(found.sort()).toEqual(ids(many).sort());
    expect(await removed({ maxRuns: 1 }, all)).toHaveLength(225);
  });

  test.each([
    [{ maxAgeDays: -1 }, "retention.maxAgeDays"],
    [{ maxAgeDays: Number.NaN }, "retention.maxAgeDays"],
    [{ maxAgeDays: "1" }, "retention.maxAgeDays"],
    [{ maxAgeDays: null }, "retention.maxAgeDays"],
    [{ maxRuns: 1.5 }, "retention.maxRuns"],
    [{ includeAbandoned: "yes" }, "retention.includeAbandoned"],
    [{ dryRun: 1 }, "retention.dryRun"],
    [{ maxAge: 1 }, "retention.maxAge"],
    [undefined, "retention"],
  ])("refuses %j", (retention, option) => {
    const error = thrown(() => checkRetention(retention as Retention), ConfigError);
    expect(error.option).toBe(option);
  });
});
