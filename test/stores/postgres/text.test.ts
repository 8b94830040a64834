import fc from "fast-check";
import { expect, test } from "vitest";
import { CheckpointNotFoundError, State } from "waymark";
import { rejection } from "../../graphs.js";
import { type Notes, start, Tables } from "./tables.js";

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

test.each(nasty)("%j is treated as a plain name everywhere", async (name) => {
  const store = tables.open();
  const graph = { name, version: 3, fingerprint: name };
  const runId = /[\0\ud800]/.test(name) ? "run" : name;
  const metadata = { [name]: name, count: 7, open: true };
  const json = {
    ...start(runId, { n: 0, text: name }).toJSON(),
    metadata,
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
    expect.objectContaining({ runId, graph: name, status: "pending", node: name, metadata }),
  ]);
  expect(await store.runs({ metadata: { [name]: "another" } })).toEqual([]);
  expect(await store.runs({ metadata })).toHaveLength(1);
  const [entry] = await store.history(runId);
  expect([entry?.node, entry?.reason]).toEqual([name, name]);
  expect((await store.load(runId, { checkpointId: entry?.checkpointId })).sequence).toBe(2);
  expect(await store.find(entry?.checkpointId ?? "")).toBe(runId);
  await rejection(store.load(runId, { checkpointId: name }), CheckpointNotFoundError);
  expect(await store.find(name)).toBeUndefined();
  await store.claim(runId);
  await store.delete(runId);
  expect((await store.list()).sort()).toEqual(["a", "b", "c", "d"]);
});

test.each(nasty)("%j is treated as a plain id of an imported checkpoint", async (checkpointId) => {
  const store = tables.open();
  const state = State.fromJSON<Notes>({ ...start().toJSON(), checkpointId, sequence: 3 });
  await store.import([{ state: state as never, parentId: checkpointId }]);
  expect(await store.find(checkpointId)).toBe("run");
  const loaded = await tables.open().load<Notes>("run", { checkpointId });
  expect([loaded.checkpointId, loaded.sequence]).toEqual([checkpointId, 3]);
  expect((await store.save(loaded.set("n", 1))).sequence).toBe(4);
});

test("names of any kind are plain names in a batch of saves", async () => {
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

test("any text in keys, values, nodes and reasons round-trips", async () => {
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
