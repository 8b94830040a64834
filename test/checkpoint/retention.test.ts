import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError, type Retention, type RunFilter, type RunSummary } from "waymark";
import { type FakeClock, useFakeClock } from "waymark/testing";
import { filterRuns, prunable } from "../../src/checkpoint/retention.js";
import { thrown } from "../graphs.js";

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 0, 31);

/** A run whose last node completed so many days ago. */
function run(
  runId: string,
  status: RunSummary["status"],
  daysAgo: number,
  graph = "g",
): RunSummary {
  const timestamp = new Date(NOW - daysAgo * DAY).toISOString();
  return { runId, graph, status, node: "n", step: 1, timestamp };
}

const runs = [
  run("old", "completed", 30),
  run("failed", "failed", 10),
  run("busy", "in_progress", 40),
  run("paused", "paused", 50, "h"),
  run("waiting", "pending", 60),
  run("new", "completed", 1, "h"),
];

const ids = (found: readonly RunSummary[]): string[] => found.map(({ runId }) => runId);

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
    [{ limit: 2 }, ["new", "failed"]],
    [{ limit: 0 }, []],
    [{ limit: 99, status: "pending" }, ["waiting"]],
    [{ before: new Date(NOW - 30 * DAY).toISOString() }, ["busy", "paused", "waiting"]],
    [{ cursor: run("busy", "in_progress", 40) }, ["paused", "waiting"]],
    [{ cursor: run("zzz", "completed", 40), limit: 1 }, ["busy"]],
  ])("%j", (filter, found) => {
    expect(ids(filterRuns(runs, filter))).toEqual(found);
  });

  test("has one order also for runs of the same moment, and leaves the list as it was", () => {
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
    [{ cursor: null }, "filter.cursor.timestamp"],
    [{ cursor: { timestamp: "2030-01-01T00:00:00.000Z" } }, "filter.cursor.runId"],
    [null, "filter"],
  ])("refuses %j", (filter, option) => {
    expect(thrown(() => filterRuns(runs, filter as RunFilter), ConfigError).option).toBe(option);
  });
});

describe("which runs are old", () => {
  let clock: FakeClock;
  beforeEach(() => {
    clock = useFakeClock(NOW);
  });
  afterEach(() => clock.restore());

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
  ])("%j, and none that is not finished", (retention, found) => {
    expect(ids(prunable(runs, retention))).toEqual(found);
  });

  test.each([
    [{ maxAgeDays: -1 }, "retention.maxAgeDays"],
    [{ maxAgeDays: Number.NaN }, "retention.maxAgeDays"],
    [{ maxAgeDays: "1" }, "retention.maxAgeDays"],
    [{ maxRuns: 1.5 }, "retention.maxRuns"],
    [{ dryRun: 1 }, "retention.dryRun"],
    [{ maxAge: 1 }, "retention.maxAge"],
    [undefined, "retention"],
  ])("refuses %j", (retention, option) => {
    const error = thrown(() => prunable(runs, retention as Retention), ConfigError);
    expect(error.option).toBe(option);
  });
});
