import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import {
  CheckpointConflictError,
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  State,
  StateGraph,
} from "waymark";
import { rejection } from "../../graphs.js";
import { listen } from "../folders.js";
import { Flaky, failure } from "./flaky.js";
import { newSchema } from "./server.js";
import { ended, type Notes, saveSteps, sequencesOf, start, stepTo, Tables } from "./tables.js";

const tables = Tables.use();

test("saves write only changes, and loads start at the last whole State", async () => {
  const store = tables.open({ keep: 100 });
  const state = await saveSteps(store, 20, { n: 0, text: "x".repeat(50_000) });
  const [newest, ...rest] = await store.history("run");
  expect(newest?.bytes).toBeLessThan(1000);
  expect(rest.at(-1)?.bytes).toBeGreaterThan(50_000);
  expect((await tables.open().load<Notes>("run")).toJSON()).toEqual(state.toJSON());
  expect((await tables.open().load<Notes>("run", { step: 20 })).sequence).toBe(20);
  const fifth = rest.find(({ sequence }) => sequence === 5);
  const { checkpointId = "" } = fifth ?? {};
  const loaded = await tables.open().load<Notes>("run", { checkpointId });
  expect([loaded.data.n, loaded.sequence, loaded.bytes]).toEqual([5, 5, fifth?.bytes]);
  expect((await tables.open().load<Notes>("run", { checkpointId, step: 5 })).data.n).toBe(5);
  await rejection(tables.open().load("run", { checkpointId, step: 1 }), CheckpointNotFoundError);
});

test("records that a kept checkpoint builds on survive pruning", async () => {
  const store = tables.open({ keep: 3, snapshotEvery: 10 });
  const state = await saveSteps(store, 32, { n: 0, text: "x".repeat(500) });
  await store.close();
  expect(await sequencesOf(store)).toEqual([32, 31, 30]);
  // 30 is a patch to what goes back to the whole one at 21.
  expect(await tables.stored()).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]);
  const oldest = (await store.history("run")).at(-1);
  const loaded = await tables.open().load<Notes>("run", { checkpointId: oldest?.checkpointId });
  expect(loaded.data.n).toBe(30);
  expect((await tables.open().load<Notes>("run")).toJSON()).toEqual(state.toJSON());
});

test("outdated checkpoints are removed in small batches", async () => {
  const state = await saveSteps(
    tables.open({ keep: Number.POSITIVE_INFINITY, snapshotEvery: 1 }),
    3,
  );
  await tables.ask(
    `INSERT INTO $schema.checkpoints SELECT run, -i, -i, bytes, 0, 'c' || i, sha256, header, content
     FROM $schema.checkpoints, generate_series(1, 1200) i WHERE sequence = 1`,
  );
  const flaky = new Flaky(tables.pool);
  const store = tables.open({ client: flaky, keep: 2 });
  await store.save(ended(state));
  await store.close();
  expect(await tables.stored()).toEqual([3, 4]);
  expect(flaky.asked.filter((text) => text.includes("DELETE")).length).toBe(3);
});

test("cleanup for a deleted run does not touch the run that started over", async () => {
  const store = tables.open({ keep: 2, snapshotEvery: 1 });
  await saveSteps(store, 6);
  await tables.open().delete("run");
  await saveSteps(tables.open({ keep: Number.POSITIVE_INFINITY }), 4);
  await store.close();
  expect(await tables.stored()).toEqual([1, 2, 3, 4]);
});

test("cleanup for a deleted run does not touch one that is still claimed", async () => {
  const store = tables.open({ keep: 2, snapshotEvery: 1 });
  const claim = await store.claim("run");
  await saveSteps(store, 6);
  await store.delete("run");
  let state = start();
  for (let n = 1; n <= 4; n++) {
    state = await store.save(stepTo(state, n), { keep: Number.POSITIVE_INFINITY });
  }
  await claim?.release();
  await store.close();
  expect(await tables.stored()).toEqual([1, 2, 3, 4]);
});

test("large outdated checkpoints are removed sooner", async () => {
  const store = tables.open({ keep: 2, snapshotEvery: 1 });
  await saveSteps(store, 8, { n: 0, text: "x".repeat(200_000) });
  await store.close();
  expect(await tables.stored()).toEqual([7, 8]);
});

test("a State above maxBytes is refused, and one above warnBytes emits an event", async () => {
  const { context, events } = listen();
  const store = tables.open({ maxBytes: 5000, warnBytes: 2000 });
  const error = await rejection(
    store.save(start("run", { n: 0, text: "x".repeat(5000) })),
    CheckpointSaveError,
  );
  expect(error.message).toMatch(
    /^the checkpoint of run "run" was not saved .* more than maxBytes \(5000\)/,
  );
  await store.save(start("run", { n: 0, text: "x".repeat(2000) }), context);
  expect(events.map(({ type, data }) => [type, (data as { kind: string }).kind])).toEqual([
    ["checkpoint.warning", "size"],
  ]);
});

test("saving a State from before a delete and a restart is a conflict", async () => {
  const store = tables.open();
  const old = await store.save(start());
  await tables.open().delete("run");
  await tables.open().save(start("run", { n: 7 }));
  const error = await rejection(store.save(old.set("n", 1)), CheckpointConflictError);
  expect(error.message).toMatch(/was deleted and started again/);
  expect((await tables.open().load<Notes>("run")).data.n).toBe(7);
});

test.each(["whole", "after the last whole one"])(
  "a corrupt row, %s, is set aside, and the newest intact checkpoint is used",
  async (what) => {
    const store = tables.open({ keep: 100, snapshotEvery: what === "whole" ? 1 : 4 });
    await saveSteps(store, 6, { n: 0, text: "x".repeat(500) });
    await tables.ask(`UPDATE $schema.checkpoints SET content = content || ' ' WHERE sequence > 4`);
    const { context, events } = listen();
    const loaded = await tables.open().load<Notes>("run", {}, context);
    expect([loaded.data.n, loaded.sequence]).toEqual([4, 6]);
    const told = events.filter(({ type }) => type === "checkpoint.quarantine");
    expect(told.length).toBe(what === "whole" ? 2 : 1);
    expect(told[0]?.data).toMatchObject({
      file: expect.stringMatching(/checkpoint [56] of run "run"$/),
    });
    expect(await sequencesOf(store)).not.toContain(5);
    const next = await tables.open().save(loaded.set("n", 9));
    expect(next.sequence).toBe(7);
    expect((await tables.open().load<Notes>("run")).data.n).toBe(9);
  },
);

test("a run whose newest record was set aside is listed by the previous one", async () => {
  const store = tables.open({ snapshotEvery: 1 });
  const paused = { ...start().toJSON(), status: "paused", metadata: { tenant: "one" } } as const;
  const saved = await store.save(State.fromJSON<Notes>(paused));
  const last = { ...saved.toJSON(), status: "completed", metadata: { tenant: "two" } } as const;
  await store.save(State.fromJSON<Notes>(last));
  await tables.ask(`UPDATE $schema.checkpoints SET content = 'nothing' WHERE sequence = 2`);
  expect((await store.load("run")).status).toBe("paused");
  expect(await store.runs({ status: "completed" })).toEqual([]);
  expect(await store.runs({ metadata: { tenant: "two" } })).toEqual([]);
  const found = await store.runs({ status: "paused", metadata: { tenant: "one" } });
  expect(found).toMatchObject([{ runId: "run", status: "paused", metadata: { tenant: "one" } }]);
});

test("loading a run without an intact checkpoint fails each time with that reason", async () => {
  const store = tables.open({ snapshotEvery: 1 });
  await saveSteps(store, 2, { n: 0 });
  await tables.ask(`UPDATE $schema.checkpoints SET content = 'nothing'`);
  const first = await rejection(store.load("run"), CheckpointCorruptionError);
  expect(first.message).toMatch(/no intact checkpoint left: .*checkpoint 2 .*checkpoint 1 /);
  const second = await rejection(store.load("run"), CheckpointCorruptionError);
  expect(second.message).toMatch(
    /only corrupt checkpoints, which were set aside in Postgres schema/,
  );
  await rejection(store.load("run", { step: 7 }), CheckpointNotFoundError);
});

test("a requested corrupt checkpoint is not reported as the only one", async () => {
  const store = tables.open({ snapshotEvery: 1 });
  const { checkpointId } = await saveSteps(store, 2, { n: 0 });
  await tables.ask(`UPDATE $schema.checkpoints SET content = 'nothing' WHERE sequence = 2`);
  const error = await rejection(store.load("run", { checkpointId }), CheckpointCorruptionError);
  expect(error.message).toContain(`has no intact checkpoint with the id "${checkpointId}"`);
});

test("a corrupt row that can't be marked is still skipped", async () => {
  const flaky = new Flaky(tables.pool);
  const store = tables.open({ client: flaky, snapshotEvery: 1 });
  await saveSteps(store, 2, { n: 0 });
  await tables.ask(`UPDATE $schema.checkpoints SET content = 'nothing' WHERE sequence = 2`);
  flaky.before = (text) => (/aside = 1/.test(text) ? failure("25006") : undefined);
  const { context, events } = listen();
  expect((await store.load<Notes>("run", {}, context)).data.n).toBe(1);
  expect(events.map(({ type }) => type)).toEqual(["checkpoint.error", "checkpoint.warning"]);
});

test.each([
  [
    "of another row",
    `UPDATE $schema.checkpoints c SET header = o.header, content = o.content, sha256 = o.sha256
     FROM $schema.checkpoints o WHERE o.sequence = 3 AND c.sequence = 4`,
  ],
  ["without what it builds on", "DELETE FROM $schema.checkpoints WHERE sequence IN (1, 2)"],
  ["with a gap before it", "DELETE FROM $schema.checkpoints WHERE sequence = 3"],
])("a checkpoint %s is corrupt", async (_, text) => {
  await saveSteps(tables.open(), 4, { n: 0 });
  await tables.ask(text);
  const { context, events } = listen();
  const outcome = await tables
    .open()
    .load<Notes>("run", {}, context)
    .then(
      ({ data }) => data.n,
      (error: Error) => error,
    );
  if (typeof outcome === "number") {
    expect(outcome).toBeLessThan(4);
    expect(events.map(({ type }) => type)).toContain("checkpoint.warning");
  } else {
    expect(outcome).toBeInstanceOf(CheckpointCorruptionError);
  }
});

/** Changes a row, as somebody would who can also make its hash. */
async function rewrite(
  sequence: number,
  change: (header: string, content: string) => readonly [string, string],
): Promise<void> {
  const [row = {}] = await tables.ask(
    "SELECT header, content FROM $schema.checkpoints WHERE sequence = $1",
    [sequence],
  );
  const [header, content] = change(String(row.header), String(row.content));
  const sha256 = createHash("sha256").update(`${header}\n${content}`).digest("hex");
  await tables.ask(
    "UPDATE $schema.checkpoints SET header = $2, content = $3, sha256 = $4 WHERE sequence = $1",
    [sequence, header, content, sha256],
  );
}

test("a record of a newer format is refused, not set aside", async () => {
  const store = tables.open();
  await store.save(start());
  await rewrite(1, (header, content) => [header.replace('"format":1', '"format":2'), content]);
  await expect(store.load("run")).rejects.toThrow(/format 2: a newer waymark/);
  expect(await tables.ask("SELECT FROM $schema.checkpoints WHERE aside <> 0")).toEqual([]);
});

// 1 and 4 are whole, the others patches to the one before.
test.each([
  [1, 6],
  [4, 3],
  [5, 4],
  [6, 5],
])(
  "if of six encrypted checkpoints the %ith is tampered with, the newest that does not need it is used",
  async (bad, n) => {
    const codec = { encrypt: { current: "k1", keys: { k1: Buffer.alloc(32, 7) } } };
    const options = { codec, snapshotEvery: 3, keep: 10 };
    await saveSteps(tables.open(options), 6);
    await rewrite(bad, (header, content) => {
      const first = content[1] === "A" ? "B" : "A";
      return [header, `"${first}${content.slice(2)}`];
    });
    const store = tables.open(options);
    const { context, events } = listen();
    const newest = await store.load<Notes>("run", {}, context);
    expect([newest.data.n, newest.sequence]).toEqual([n, 6]);
    expect([...new Set(events.map(({ type }) => type))]).toEqual(
      n === 6 ? [] : ["checkpoint.quarantine", "checkpoint.warning"],
    );
    expect((await store.save(newest.set("n", 7))).sequence).toBe(7);
    expect((await tables.open(options).load<Notes>("run")).data.n).toBe(7);
  },
);

test("a run is found by the id of any of its checkpoints", async () => {
  const store = tables.open({ keep: 2, snapshotEvery: 1 });
  const first = await store.save(start("one"));
  const other = await store.save(start("other"));
  const second = await store.save(stepTo(first, 1));
  expect(await store.find(first.checkpointId)).toBe("one");
  expect(await tables.open().find(second.checkpointId)).toBe("one");
  expect(await store.find(other.checkpointId)).toBe("other");
  expect(await store.find("unknown")).toBeUndefined();
  await store.delete("one");
  expect(await store.find(second.checkpointId)).toBeUndefined();
});

test("a run whose checkpoints are all set aside can start over", async () => {
  const store = tables.open();
  await saveSteps(store, 2);
  await tables.ask("UPDATE $schema.checkpoints SET aside = 1");
  await rejection(store.load("run"), CheckpointCorruptionError);
  expect((await tables.open().save(start())).sequence).toBe(3);
});

test("a State of many megabytes is saved, slightly changed, and loaded", async () => {
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
  const { parent } = await store.load(fork.runId);
  expect(parent?.checkpointId).toBe(history.find(({ step }) => step === 1)?.checkpointId);

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

test("an import that loses against another writer is a conflict", async () => {
  const source = tables.open();
  await saveSteps(source, 2, { n: 0 });
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
