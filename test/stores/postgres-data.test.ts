import fc from "fast-check";
import { expect, test } from "vitest";
import { CheckpointConflictError, CheckpointNotFoundError, State, StateGraph } from "waymark";
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

test("names of any kind are only names when many are saved at once", async () => {
  const store = tables.open();
  const firsts = await Promise.all(nasty.map((_, index) => store.save(start(`run ${index}`))));
  const saved = await Promise.all(
    firsts.map((state, index) => {
      const name = nasty[index] ?? "";
      const graph = { name, version: 3, fingerprint: name };
      const named = { ...state.toJSON(), graph, checkpointNode: name, reason: name };
      return store.save(State.fromJSON<Notes>(named).set("text", name));
    }),
  );
  for (const [index, state] of saved.entries()) {
    const loaded = await tables.open().load<Notes>(state.runId);
    expect(loaded.toJSON()).toEqual(state.toJSON());
    expect(loaded.data.text).toBe(nasty[index]);
    expect((await store.runs({ graph: nasty[index] ?? "" })).map(({ runId }) => runId)).toEqual([
      state.runId,
    ]);
  }
});

/** Any text, also with the character 0 and halves of surrogate pairs. */
const anyText = fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)) });

test("any text in keys, values, nodes and reasons comes back as it was", async () => {
  const store = tables.open();
  let runs = 0;
  const texts = fc.array(fc.tuple(anyText, anyText, anyText, anyText), { minLength: 5 });
  await fc.assert(
    fc.asyncProperty(texts, async (all) => {
      const saved = await Promise.all(
        all.map(async ([key, value, checkpointNode, reason]) => {
          const data = { n: 0, [key]: value };
          const json = { ...start(`any ${++runs}`).toJSON(), checkpointNode, reason, data };
          const first = await store.save(State.fromJSON<Notes>(json));
          return store.save(first.set("text", value));
        }),
      );
      for (const state of saved) {
        expect((await store.load(state.runId)).toJSON()).toEqual(state.toJSON());
      }
    }),
    { numRuns: 10 },
  );
});

test("a State of many megabytes is saved, changed by little, and loaded", async () => {
  const store = tables.open();
  const text = "A cairn \u0000 \ud83e\udea8 ".repeat(1_000_000);
  const first = await store.save(start("run", { n: 0, text }));
  expect(first.bytes).toBeGreaterThan(16_000_000);
  const second = await store.save(first.set("n", 1));
  expect(second.bytes).toBeLessThan(1000);
  const loaded = await tables.open().load<Notes>("run");
  expect([loaded.data.n, loaded.data.text === text]).toEqual([1, true]);
});

test("a graph forks, rolls back and shows its history in Postgres", async () => {
  const store = tables.open();
  const graph = new StateGraph<Notes>({
    name: "count",
    checkpoint: { store, interval: 1, preserve: true, keep: 10 },
  })
    .addNode("count", (state) => state.set("n", state.data.n + 1))
    .addNode("end", (state) => state)
    .addEdge("count", "count", (state) => state.data.n < 3)
    .addEdge("count", "end")
    .setEntryPoint("count")
    .setExitPoint("end");
  await graph.execute(start());
  const history = await graph.history("run");
  expect(history.map(({ node }) => node)).toEqual(["end", "count", "count", "count", ""]);

  const fork = await graph.fork("run", { step: 1 }, { n: -1 });
  expect((await graph.resume(fork.runId)).data.n).toBe(3);
  const forked = await graph.history(fork.runId);
  expect(forked.at(-1)?.parentId).toBe(history.find(({ step }) => step === 1)?.checkpointId);

  await graph.rollback("run", { step: 2 });
  expect((await store.load<Notes>("run")).data.n).toBe(2);
  expect((await graph.resume("run")).data.n).toBe(3);
  expect((await store.runs({ graph: "count" })).map(({ status }) => status)).toEqual([
    "completed",
    "completed",
  ]);
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
