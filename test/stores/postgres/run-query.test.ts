import { expect, test } from "vitest";
import {
  ConfigError,
  type Metadata,
  type Retention,
  type RunFilter,
  type RunStatus,
  State,
} from "waymark";
import type { PostgresStore } from "waymark/stores/postgres";
import { useFakeClock } from "waymark/testing";
import { rejection } from "../../graphs.js";
import { Flaky } from "./flaky.js";
import { type Notes, start, Tables } from "./tables.js";

const tables = Tables.use();

/** Saves a run on a day of January 2030. */
async function saveRun(
  store: PostgresStore,
  runId: string,
  status: RunStatus,
  day: number,
  metadata: Metadata = {},
): Promise<void> {
  const clock = useFakeClock(Date.UTC(2030, 0, day));
  try {
    await store.save(State.fromJSON({ ...start(runId).toJSON(), status, metadata }));
  } finally {
    clock.restore();
  }
}

/** Does something on a day of January 2030. */
async function onDay<T>(day: number, action: () => Promise<T>): Promise<T> {
  const clock = useFakeClock(Date.UTC(2030, 0, day));
  try {
    return await action();
  } finally {
    clock.restore();
  }
}

test("retention removes old runs in the background, about once an hour", async () => {
  const store = tables.open({ retention: { maxAgeDays: 5 } });
  await saveRun(tables.open(), "old", "completed", 1);
  await saveRun(store, "new", "completed", 20);
  await store.close();
  expect(await store.list()).toEqual(["new"]);
  await saveRun(tables.open(), "old", "completed", 1);
  await saveRun(store, "newer", "completed", 20);
  await store.close();
  expect((await store.list()).sort()).toEqual(["new", "newer", "old"]);
  await saveRun(store, "newest", "completed", 21);
  await store.close();
  expect((await store.list()).sort()).toEqual(["new", "newer", "newest"]);
});

test("prune takes the stricter of age and count, most recent first", async () => {
  const store = tables.open();
  for (let day = 1; day <= 9; day++) await saveRun(store, `day-${day}`, "completed", day);
  await saveRun(store, "active", "in_progress", 1);
  const prune = (retention: Retention): Promise<string[]> =>
    onDay(20, () => store.prune(retention));
  const dryRun = true;
  expect(await prune({ maxAgeDays: 12, maxRuns: 3, dryRun })).toHaveLength(7);
  expect(await prune({ maxAgeDays: 18, maxRuns: 5, dryRun })).toHaveLength(4);
  expect(await prune({ maxAgeDays: 18, maxRuns: 50, dryRun })).toEqual(["day-1"]);
  expect(await prune({ maxRuns: 50, dryRun })).toEqual([]);
  expect(await prune({ maxAgeDays: 1e9 })).toEqual([]);
  expect(await prune({})).toEqual([]);
  expect((await prune({ maxAgeDays: 12, maxRuns: 9 })).sort()).toEqual(
    [1, 2, 3, 4, 5, 6, 7].map((day) => `day-${day}`),
  );
  expect((await store.list()).sort()).toEqual(["active", "day-8", "day-9"]);
  expect(await tables.ask("SELECT DISTINCT run FROM $schema.checkpoints")).toHaveLength(3);
});

test("prune removes more runs than a page holds", async () => {
  const flaky = new Flaky(tables.pool);
  const store = tables.open({ client: flaky });
  const saved = await store.save(start());
  await tables.ask(
    `INSERT INTO $schema.runs (run_id, sequence, status, saved_at, header)
     SELECT 'run-' || i, 1, 'failed', '2020', replace(header, '"runId":"run"', '"runId":"run-' || i || '"')
     FROM $schema.runs, generate_series(1, 450) i`,
  );
  const pages: number[] = [];
  flaky.after = (text, params) => {
    if (/FOR UPDATE/.test(text)) pages.push(String(params[0]).split(",").length);
    return undefined;
  };
  expect(await store.prune({ maxRuns: 0 })).toHaveLength(450);
  expect(pages).toEqual([200, 200, 50]);
  expect(await store.list()).toEqual([saved.runId]);
});

test("a run saved to between being found and removed is kept", async () => {
  const flaky = new Flaky(tables.pool);
  const store = tables.open({ client: flaky });
  for (const runId of ["one", "two"]) await saveRun(store, runId, "failed", 1);
  flaky.after = async (text) => {
    if (!/UNION ALL/.test(text)) return undefined;
    flaky.after = () => undefined;
    await tables.open().save((await tables.open().load<Notes>("one")).set("n", 1));
    return undefined;
  };
  expect(await store.prune({ maxRuns: 0 })).toEqual(["two"]);
  expect(await store.list()).toEqual(["one"]);
});

test("a time and a cursor both limit a list", async () => {
  const store = tables.open();
  for (let day = 1; day <= 9; day++) await saveRun(store, `day-${day}`, "failed", day);
  const at = (day: number): string => new Date(Date.UTC(2030, 0, day)).toISOString();
  const before = async (day: number, after: number, runId = `day-${after}`) => {
    const found = await store.runs({ before: at(day), cursor: { savedAt: at(after), runId } });
    return found.map((run) => run.runId);
  };
  const rest = ["day-4", "day-3", "day-2", "day-1"];
  expect(await before(5, 7)).toEqual(rest);
  expect(await before(7, 5)).toEqual(rest);
  expect(await before(5, 5, "zzz")).toEqual(rest);
  expect(await before(6, 5, "zzz")).toEqual(["day-5", ...rest]);
});

test("an empty list of statuses matches no runs", async () => {
  const store = tables.open();
  await store.save(start());
  expect(await store.runs({ status: [] })).toEqual([]);
  expect(await store.runs({ status: ["pending", "pending"], limit: 5 })).toHaveLength(1);
  expect(await store.runs({ limit: 0 })).toEqual([]);
});

test("an invalid cursor is refused without querying the database", async () => {
  const store = tables.open();
  const cursor = { savedAt: "2020-01-01T00:00:00.000Z", runId: "\0" };
  expect((await rejection(store.runs({ cursor }), ConfigError)).option).toBe("runId");
  const none = await rejection(store.runs({ cursor: null as never }), ConfigError);
  expect(none.option).toBe("filter.cursor.savedAt");
});

test("runs are filtered by all given metadata, with their types", async () => {
  const store = tables.open();
  await saveRun(store, "one", "failed", 1, { tenant: "acme", tier: 1, open: true });
  await saveRun(store, "two", "completed", 2, { tenant: "acme", tier: "1", open: false });
  await saveRun(store, "three", "completed", 3);
  const found = async (metadata: Metadata, filter: RunFilter = {}): Promise<string[]> =>
    (await store.runs({ ...filter, metadata })).map(({ runId }) => runId);
  expect(await found({ tenant: "acme" })).toEqual(["two", "one"]);
  expect(await found({ tenant: "acme" }, { status: "failed" })).toEqual(["one"]);
  expect(await found({ tenant: "acme" }, { limit: 1 })).toEqual(["two"]);
  expect(await found({ tier: 1 })).toEqual(["one"]);
  expect(await found({ tier: "1", open: false })).toEqual(["two"]);
  expect(await found({ tenant: "acme", tier: 2 })).toEqual([]);
  expect(await found({})).toEqual(["three", "two", "one"]);
});
