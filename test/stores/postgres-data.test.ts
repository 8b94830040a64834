import { expect, test } from "vitest";
import { CheckpointConflictError, CheckpointNotFoundError, State } from "waymark";
import { JournalStore } from "waymark/stores/journal";
import { rejection } from "../graphs.js";
import { newSchema } from "../postgres/server.js";
import { type Notes, saveTimes, sequencesOf, start, Tables } from "../postgres/tables.js";
import { newFolder } from "./folders.js";

const tables = Tables.use();

const nasty = [
  `'; DROP TABLE runs; --`,
  `"; DROP SCHEMA waymark CASCADE; --`,
  "$1",
  "\\'; --",
  "%_",
  "\0",
  "\ud800",
  "\\u0000",
  "\\\\",
  "NULL",
  "{a,b}",
];

test.each(nasty)("%j is only a name, wherever it stands", async (name) => {
  const store = tables.open();
  const graph = { name, version: 3, fingerprint: name };
  const runId = /[\0\ud800]/.test(name) ? "run" : name;
  const json = {
    ...start(runId, { n: 0, text: name }).toJSON(),
    graph,
    checkpointNode: name,
    reason: name,
    data: { n: 0, text: name, [name]: name },
  };
  const others = ["a", "b", "c", "d"].map((id) => start(id));
  const [saved] = await Promise.all(
    [State.fromJSON<Notes>(json), ...others].map(async (state) =>
      store.save((await store.save(state)).set("n", 1)),
    ),
  );
  const loaded = await tables.open().load<Notes>(runId);
  expect(loaded.toJSON()).toEqual(saved?.toJSON());
  expect(await store.runs({ graph: name })).toEqual([
    { runId, graph: name, status: "pending", node: name, step: 0, timestamp: saved?.timestamp },
  ]);
  const [entry] = await store.history(runId);
  expect([entry?.node, entry?.reason]).toEqual([name, name]);
  expect((await store.load(runId, { checkpointId: entry?.checkpointId })).sequence).toBe(2);
  await rejection(store.load(runId, { checkpointId: name }), CheckpointNotFoundError);
  await store.claim(runId);
  await store.delete(runId);
  expect((await store.list()).sort()).toEqual(["a", "b", "c", "d"]);
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

test("a run moves from a journal and back, checkpoint by checkpoint", async () => {
  const journal = new JournalStore({ root: newFolder(), keep: 10 });
  let state = start("run", { n: 0, text: "x".repeat(2000) });
  for (let n = 1; n <= 6; n++) state = await journal.save(state.set("n", n));
  const store = tables.open();
  await store.import(journal.export("run"));
  const history = await store.history("run");
  const without = (entries: readonly { bytes?: number }[]): object[] =>
    entries.map(({ bytes: _, ...rest }) => rest);
  expect(without(history)).toEqual(without(await journal.history("run")));
  expect(history[0]?.bytes).toBeLessThan(1000);
  expect((await store.load<Notes>("run")).toJSON()).toEqual(state.toJSON());
  await rejection(store.import(journal.export("run")), CheckpointConflictError);
  const back = new JournalStore({ root: newFolder() });
  await back.import(store.export("run"));
  expect((await back.load<Notes>("run")).toJSON()).toEqual(state.toJSON());
  expect(await all(store.export("unknown"))).toEqual([]);
  // From the next save on only so many are kept as ever.
  const loaded = await store.load<Notes>("run");
  await store.save(loaded.set("n", 7));
  expect(await sequencesOf(store)).toEqual([7, 6, 5, 4, 3]);
  await Promise.all([journal.close(), back.close()]);
});

test("an import that somebody is faster than is a conflict", async () => {
  const source = tables.open();
  await saveTimes(source, 2, { n: 0 });
  const exported = await all(source.export("run"));
  tables.schema = newSchema();
  const store = tables.open();
  const slow = (async function* () {
    for (const [index, one] of exported.entries()) {
      if (index === 1) await tables.open().save(await tables.open().load<Notes>("run"));
      yield one;
    }
  })();
  await rejection(store.import(slow), CheckpointConflictError);
});
