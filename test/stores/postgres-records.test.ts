import { expect, test } from "vitest";
import {
  CheckpointConflictError,
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  State,
} from "waymark";
import { rejection } from "../graphs.js";
import { Flaky, failure } from "../postgres/flaky.js";
import { type Notes, saveTimes, sequencesOf, start, Tables } from "../postgres/tables.js";
import { listen } from "./folders.js";
import { withOther } from "./tampered.js";

const tables = Tables.use();

test("only what changed is written, and loaded from the last whole one on", async () => {
  const store = tables.open({ keep: 100 });
  const state = await saveTimes(store, 20, { n: 0, text: "x".repeat(50_000) });
  const [newest, ...rest] = await store.history("run");
  expect(newest?.bytes).toBeLessThan(1000);
  expect(rest.at(-1)?.bytes).toBeGreaterThan(50_000);
  expect((await tables.open().load<Notes>("run")).toJSON()).toEqual(state.toJSON());
  expect((await tables.open().load<Notes>("run", { step: 0 })).sequence).toBe(20);
  const fifth = rest.find(({ sequence }) => sequence === 5);
  const { checkpointId = "" } = fifth ?? {};
  const loaded = await tables.open().load<Notes>("run", { checkpointId });
  expect([loaded.data.n, loaded.sequence, loaded.bytes]).toEqual([5, 5, fifth?.bytes]);
  expect((await tables.open().load<Notes>("run", { checkpointId, step: 0 })).data.n).toBe(5);
  await rejection(tables.open().load("run", { checkpointId, step: 1 }), CheckpointNotFoundError);
});

test("what a kept checkpoint builds on stays when older ones go", async () => {
  const store = tables.open({ keep: 3, snapshotEvery: 10 });
  const state = await saveTimes(store, 32, { n: 0, text: "x".repeat(500) });
  await store.close();
  expect(await sequencesOf(store)).toEqual([32, 31, 30]);
  // 30 is a patch to what goes back to the whole one at 21.
  expect(await tables.stored()).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]);
  const oldest = (await store.history("run")).at(-1);
  const loaded = await tables.open().load<Notes>("run", { checkpointId: oldest?.checkpointId });
  expect(loaded.data.n).toBe(30);
  expect((await tables.open().load<Notes>("run")).toJSON()).toEqual(state.toJSON());
});

test("many that are too old go in small batches", async () => {
  const flaky = new Flaky(tables.pool);
  const store = tables.open({ client: flaky, keep: Number.POSITIVE_INFINITY, snapshotEvery: 1 });
  let state = await saveTimes(store, 3, { n: 0 });
  await tables.ask(
    `INSERT INTO $schema.checkpoints SELECT run, -i, -i, 'c' || i, '', step, node, status, "timestamp", reason, bytes, false, body
     FROM $schema.checkpoints, generate_series(1, 1200) i WHERE sequence = 1`,
  );
  state = await store.save(State.fromJSON({ ...state.toJSON(), status: "completed" }), { keep: 2 });
  await store.close();
  expect(await tables.stored()).toEqual([3, 4]);
  expect(flaky.asked.filter((text) => text.includes("dead")).length).toBe(3);
});

test("large checkpoints that are too old go sooner", async () => {
  const store = tables.open({ keep: 2, snapshotEvery: 1 });
  await saveTimes(store, 8, { n: 0, text: "x".repeat(200_000) });
  await store.close();
  expect(await tables.stored()).toEqual([7, 8]);
});

test("a State larger than maxBytes is refused, and one larger than warnBytes told", async () => {
  const { context, events } = listen();
  const store = tables.open({ maxBytes: 5000, warnBytes: 2000 });
  const error = await rejection(
    store.save(start("run", { n: 0, text: "x".repeat(5000) })),
    CheckpointSaveError,
  );
  expect(error.message).toMatch(/^nothing of run "run" was saved .* more than maxBytes \(5000\)/);
  await store.save(start("run", { n: 0, text: "x".repeat(2000) }), context);
  expect(events.map(({ type, data }) => [type, (data as { action: string }).action])).toEqual([
    ["checkpoint.error", "size"],
  ]);
});

test("a State of a run that was deleted and started again is a conflict", async () => {
  const store = tables.open();
  const old = await store.save(start());
  await tables.open().delete("run");
  await tables.open().save(start("run", { n: 7 }));
  const error = await rejection(store.save(old.set("n", 1)), CheckpointConflictError);
  expect(error.message).toMatch(/was deleted and started again/);
  expect((await tables.open().load<Notes>("run")).data.n).toBe(7);
});

test.each(["whole", "after the last whole one"])(
  "a corrupt row, %s, is set aside, told, and the newest that does not need it is used",
  async (what) => {
    const store = tables.open({ keep: 100, snapshotEvery: what === "whole" ? 1 : 4 });
    await saveTimes(store, 6, { n: 0, text: "x".repeat(500) });
    await tables.ask(
      `UPDATE $schema.checkpoints SET body = replace(body, '"n"', '"m"') WHERE sequence > 4`,
    );
    await tables.ask(`UPDATE $schema.checkpoints SET body = body || ' ' WHERE sequence > 4`);
    const { context, events } = listen();
    const loaded = await tables.open().load<Notes>("run", {}, context);
    expect([loaded.data.n, loaded.sequence]).toEqual([4, 6]);
    const told = events.filter(({ type }) => type === "checkpoint.quarantine");
    expect(told.length).toBe(what === "whole" ? 2 : 1);
    expect(told[0]?.data).toMatchObject({
      file: expect.stringMatching(/run "run", sequence [56]$/),
    });
    expect(await sequencesOf(store)).not.toContain(5);
    const next = await tables.open().save(loaded.set("n", 9));
    expect(next.sequence).toBe(7);
    expect((await tables.open().load<Notes>("run")).data.n).toBe(9);
  },
);

test("a run of which nothing is whole is an error that says so, each time", async () => {
  const store = tables.open({ snapshotEvery: 1 });
  await saveTimes(store, 2, { n: 0 });
  await tables.ask(`UPDATE $schema.checkpoints SET body = 'nothing'`);
  const first = await rejection(store.load("run"), CheckpointCorruptionError);
  expect(first.message).toMatch(/no checkpoint left that is whole: .*sequence 2.*sequence 1/);
  const second = await rejection(store.load("run"), CheckpointCorruptionError);
  expect(second.message).toMatch(/only corrupt checkpoints, which are quarantined/);
  await rejection(store.load("run", { step: 7 }), CheckpointNotFoundError);
});

test("a checkpoint that is asked for and corrupt is not said to be all there was", async () => {
  const store = tables.open({ snapshotEvery: 1 });
  const { checkpointId } = await saveTimes(store, 2, { n: 0 });
  await tables.ask(`UPDATE $schema.checkpoints SET body = 'nothing' WHERE sequence = 2`);
  const error = await rejection(store.load("run", { checkpointId }), CheckpointCorruptionError);
  expect(error.message).toContain(`has no checkpoint with the id "${checkpointId}" that is whole`);
});

test("a row that is corrupt and can't be marked is passed over all the same", async () => {
  const flaky = new Flaky(tables.pool);
  const store = tables.open({ client: flaky, snapshotEvery: 1 });
  await saveTimes(store, 2, { n: 0 });
  await tables.ask(`UPDATE $schema.checkpoints SET body = 'nothing' WHERE sequence = 2`);
  flaky.before = (text) => (/quarantined = true/.test(text) ? failure("25006") : undefined);
  const { context, events } = listen();
  expect((await store.load<Notes>("run", {}, context)).data.n).toBe(1);
  expect(events.map(({ type }) => type)).toEqual(["checkpoint.error"]);
});

test.each([
  [
    "of another row",
    `UPDATE $schema.checkpoints SET body = (SELECT body FROM $schema.checkpoints WHERE sequence = 3) WHERE sequence = 4`,
  ],
  ["without what it builds on", "DELETE FROM $schema.checkpoints WHERE sequence IN (1, 2)"],
  ["with a gap before it", "DELETE FROM $schema.checkpoints WHERE sequence = 3"],
])("a checkpoint %s is corrupt", async (_, text) => {
  await saveTimes(tables.open(), 4, { n: 0 });
  await tables.ask(text);
  const { context, events } = listen();
  const outcome = await tables
    .open()
    .load<Notes>("run", {}, context)
    .then(
      ({ data }) => data.n,
      (error: Error) => error,
    );
  if (typeof outcome === "number") expect(outcome).toBeLessThan(4);
  else expect(outcome).toBeInstanceOf(CheckpointCorruptionError);
  expect(events.length).toBeGreaterThan(0);
});

test("a record of a newer format is refused, not set aside", async () => {
  const store = tables.open();
  await store.save(start());
  const [{ body } = {}] = await tables.ask("SELECT body FROM $schema.checkpoints");
  const { toLine } = await import("../../src/stores/journal/line.js");
  const header = JSON.parse(String(body)).snapshot;
  const { content, ...rest } = { content: JSON.parse(String(body)).content, ...header };
  const line = toLine("snapshot", JSON.stringify({ ...rest, format: 2 }), JSON.stringify(content));
  await tables.ask("UPDATE $schema.checkpoints SET body = $1", [line.toString()]);
  await expect(store.load("run")).rejects.toThrow(/record of format 2: a newer waymark/);
});

// 1 and 4 are whole, the others patches to the one before.
test.each([
  [1, 6],
  [4, 3],
  [5, 4],
  [6, 5],
])(
  "of six encrypted ones the %ith was tampered with: the newest that does not need it is used",
  async (bad, n) => {
    const codec = { encrypt: { current: "k1", keys: { k1: Buffer.alloc(32, 7) } } };
    const options = { codec, snapshotEvery: 3, keep: 10 };
    await saveTimes(tables.open(options), 6);
    const [row] = await tables.ask("SELECT body FROM $schema.checkpoints WHERE sequence = $1", [
      bad,
    ]);
    const body = withOther(String(row?.body));
    await tables.ask("UPDATE $schema.checkpoints SET body = $2 WHERE sequence = $1", [bad, body]);
    const store = tables.open(options);
    const { context, events } = listen();
    const newest = await store.load<Notes>("run", {}, context);
    expect([newest.data.n, newest.sequence]).toEqual([n, 6]);
    const file = expect.stringContaining(`sequence ${bad}`);
    expect(events[0]?.data).toEqual(n === 6 ? undefined : expect.objectContaining({ file }));
    expect((await store.save(newest.set("n", 7))).sequence).toBe(7);
    expect((await tables.open(options).load<Notes>("run")).data.n).toBe(7);
  },
);
