import { expect, test } from "vitest";
import { ConfigError, type RunStatus, State } from "waymark";
import type { PostgresStore } from "waymark/stores/postgres";
import { useFakeClock } from "waymark/testing";
import { rejection } from "../graphs.js";
import { Flaky } from "../postgres/flaky.js";
import { type Notes, start, Tables } from "../postgres/tables.js";

const tables = Tables.use();

async function saveRun(
  store: PostgresStore,
  runId: string,
  status: RunStatus,
  day: number,
): Promise<void> {
  const timestamp = new Date(Date.UTC(2030, 0, day)).toISOString();
  await store.save(State.fromJSON({ ...start(runId).toJSON(), status, timestamp }));
}

test("retention removes old runs in the background, about once an hour", async () => {
  const clock = useFakeClock(Date.UTC(2030, 0, 20));
  try {
    const store = tables.open({ retention: { maxAgeDays: 5 } });
    await saveRun(store, "old", "completed", 1);
    await store.close();
    expect(await store.list()).toEqual([]);
    await saveRun(store, "old", "completed", 1);
    await store.close();
    expect(await store.list()).toEqual(["old"]);
    await clock.advance(60 * 60 * 1000 + 1);
    await saveRun(store, "new", "completed", 20);
    await store.close();
    expect(await store.list()).toEqual(["new"]);
  } finally {
    clock.restore();
  }
});

test("prune takes the stricter of age and count, in pages, most recent first", async () => {
  const clock = useFakeClock(Date.UTC(2030, 0, 20));
  try {
    const store = tables.open();
    for (let day = 1; day <= 9; day++) await saveRun(store, `day-${day}`, "completed", day);
    await saveRun(store, "going", "in_progress", 1);
    const dryRun = true;
    expect(await store.prune({ maxAgeDays: 12, maxRuns: 3, dryRun })).toHaveLength(7);
    expect(await store.prune({ maxAgeDays: 18, maxRuns: 5, dryRun })).toHaveLength(4);
    expect(await store.prune({ maxAgeDays: 18, maxRuns: 50, dryRun })).toEqual(["day-1"]);
    expect(await store.prune({ maxRuns: 50, dryRun })).toEqual([]);
    expect(await store.prune({ maxAgeDays: 1e9 })).toEqual([]);
    expect(await store.prune({})).toEqual([]);
    expect(await store.prune({ maxAgeDays: 12, maxRuns: 9 })).toEqual(
      [7, 6, 5, 4, 3, 2, 1].map((day) => `day-${day}`),
    );
    expect((await store.list()).sort()).toEqual(["day-8", "day-9", "going"]);
    expect(await tables.ask("SELECT DISTINCT run FROM $schema.checkpoints")).toHaveLength(3);
  } finally {
    clock.restore();
  }
});

test("more runs than a page are pruned, and one that was saved to meanwhile is left alone", async () => {
  const flaky = new Flaky(tables.pool);
  const store = tables.open({ client: flaky });
  await store.list();
  await tables.ask(
    `INSERT INTO $schema.runs (run_id, sequence, status, "timestamp")
     SELECT 'run-' || i, 1, 'failed', '2020' FROM generate_series(1, 250) i`,
  );
  flaky.before = async (text) => {
    if (!/FOR UPDATE/.test(text)) return undefined;
    flaky.before = () => undefined;
    return undefined;
  };
  const [newest] = await store.runs({ limit: 1 });
  expect(newest?.runId).toBe("run-99");
  const pages: number[] = [];
  flaky.after = (text, params) => {
    if (/FOR UPDATE/.test(text)) pages.push((params[0] as string[]).length);
    return undefined;
  };
  await tables.ask(`UPDATE $schema.runs SET sequence = 1`);
  const listed = store.prune({ maxRuns: 0 });
  expect(await listed).toHaveLength(250);
  expect(pages).toEqual([100, 100, 50]);
});

test("a run that was saved to between being found and being removed stays", async () => {
  const flaky = new Flaky(tables.pool);
  const store = tables.open({ client: flaky });
  for (const runId of ["one", "two"]) await saveRun(store, runId, "failed", 1);
  flaky.after = async (text) => {
    if (!/sequence, graph/.test(text)) return undefined;
    flaky.after = () => undefined;
    await tables.open().save((await tables.open().load<Notes>("one")).set("n", 1));
    return undefined;
  };
  expect(await store.prune({ maxRuns: 0 })).toEqual(["two"]);
  expect(await store.list()).toEqual(["one"]);
});

test("a moment and a cursor both bound a list", async () => {
  const store = tables.open();
  for (let day = 1; day <= 9; day++) await saveRun(store, `day-${day}`, "failed", day);
  const at = (day: number): string => new Date(Date.UTC(2030, 0, day)).toISOString();
  const before = async (day: number, after: number, runId = `day-${after}`) => {
    const found = await store.runs({ before: at(day), cursor: { timestamp: at(after), runId } });
    return found.map((run) => run.runId);
  };
  const rest = ["day-4", "day-3", "day-2", "day-1"];
  expect(await before(5, 7)).toEqual(rest);
  expect(await before(7, 5)).toEqual(rest);
  expect(await before(5, 5, "zzz")).toEqual(rest);
  expect(await before(6, 5, "zzz")).toEqual(["day-5", ...rest]);
});

test("runs of no status are none", async () => {
  const store = tables.open();
  await store.save(start());
  expect(await store.runs({ status: [] })).toEqual([]);
  expect(await store.runs({ status: ["pending", "pending"], limit: 5 })).toHaveLength(1);
  expect(await store.runs({ limit: 0 })).toEqual([]);
});

test("a cursor that can be no run's is refused, and not asked of the database", async () => {
  const store = tables.open();
  const cursor = { timestamp: "2020-01-01T00:00:00.000Z", runId: "\0" };
  expect((await rejection(store.runs({ cursor }), ConfigError)).option).toBe("runId");
  const none = await rejection(store.runs({ cursor: null as never }), ConfigError);
  expect(none.option).toBe("filter.cursor.timestamp");
});
