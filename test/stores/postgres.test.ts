import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import {
  CheckpointConflictError,
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  ConfigError,
  getCheckpointStore,
  type RunStatus,
  State,
  StateGraph,
} from "waymark";
import { JournalStore } from "waymark/stores/journal";
import { PostgresStore, type PostgresStoreOptions } from "waymark/stores/postgres";
import { useFakeClock } from "waymark/testing";
import { rejection, thrown } from "../graphs.js";
import { Flaky, failure } from "../postgres/flaky.js";
import { newSchema } from "../postgres/server.js";
import { listen, newFolder } from "./folders.js";

interface Notes {
  readonly n: number;
  readonly text?: string;
  readonly list?: readonly number[];
}

let embedded: PGlite;
let schema: string;
const stores: PostgresStore[] = [];

beforeAll(async () => {
  embedded = await PGlite.create();
});

afterAll(() => embedded.close());

beforeEach(() => {
  schema = newSchema();
});

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

function open(options: Partial<PostgresStoreOptions> = {}): PostgresStore {
  const store = new PostgresStore({ client: embedded, schema, ...options });
  stores.push(store);
  return store;
}

async function ask(text: string, params: unknown[] = []): Promise<Record<string, unknown>[]> {
  const { rows } = await embedded.query(text.replace("$schema", `"${schema}"`), params);
  return rows as Record<string, unknown>[];
}

const start = (runId = "run", data: Notes = { n: 0 }): State<Notes> =>
  State.create<Notes>(data, { runId });

async function saveTimes(store: PostgresStore, times: number, data: Notes): Promise<State<Notes>> {
  let state = start("run", data);
  for (let n = 1; n <= times; n++) state = await store.save(state.set("n", n));
  return state;
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const sequences = async (store: PostgresStore): Promise<number[]> =>
  (await store.history("run")).map(({ sequence }) => sequence);

const stored = async (): Promise<number[]> =>
  (await ask("SELECT sequence FROM $schema.checkpoints ORDER BY 1")).map((row) =>
    Number(row.sequence),
  );

test.each<[string, unknown]>([
  ["PostgresStore", undefined],
  ["PostgresStore.client", {}],
  ["PostgresStore.client", { client: undefined }],
  ["PostgresStore.client", { client: 7 }],
  ["PostgresStore.client", { client: null }],
  ["PostgresStore.client", { client: {} }],
  ["PostgresStore.client", { client: { query() {} } }],
  ["PostgresStore.client", { client: "mysql://me:secret@there" }],
  ["PostgresStore.client", { client: "some/folder" }],
  ["PostgresStore.schema", { schema: "" }],
  ["PostgresStore.schema", { schema: "x".repeat(64) }],
  ["PostgresStore.schema", { schema: "a\0b" }],
  ["PostgresStore.keep", { keep: 1 }],
  ["PostgresStore.snapshotEvery", { snapshotEvery: 0 }],
  ["retention.maxRuns", { retention: { maxRuns: -1 } }],
  ["PostgresStore.maxBytes", { maxBytes: 0 }],
  ["PostgresStore.warnBytes", { warnBytes: "much" }],
  ["PostgresStore.retryFor", { retryFor: -1 }],
  ["PostgresStore.prepare", { prepare: 1 }],
  ["codec.compress", { codec: { compress: "zip" } }],
  ["PostgresStore.root", { root: "x" }],
])("refuses a wrong %s", (option, options) => {
  const whole =
    options === undefined || Object.hasOwn(options as object, "client") || option.endsWith("t")
      ? options
      : { client: embedded, ...(options as object) };
  const error = thrown(() => new PostgresStore(whole as PostgresStoreOptions), ConfigError);
  expect(error.option).toBe(option);
  expect(error.message).not.toContain("secret");
});

test.each([
  ["pg", "postgres://localhost/x"],
  ["@electric-sql/pglite", "pglite:"],
])("says which package to install when %s is missing", async (name, client) => {
  const missing = failure("ERR_MODULE_NOT_FOUND", `Cannot find package '${name}'`);
  const store = new PostgresStore({ client }, () => Promise.reject(missing));
  const error = await rejection(store.list(), ConfigError);
  expect(error.message).toBe(`PostgresStore.client needs the package ${name}: npm install ${name}`);
  const broken = new PostgresStore({ client }, () => Promise.reject(new RangeError("broken")));
  await rejection(broken.list(), RangeError);
});

test("a folder is kept from one process to the next, and is open only once", async () => {
  const folder = newFolder();
  const client = `pglite:${join(folder, "deep", "pg")}`;
  const [one, two] = [open({ client }), open({ client })];
  await one.save(start());
  const error = await rejection(two.list(), ConfigError);
  expect(error.message).toMatch(/is open already: PGlite is for one process and one store/);
  await one.close();
  expect((await two.load<Notes>("run")).data.n).toBe(0);
  await two.close();
  expect(readdirSync(join(folder, "deep"))).toEqual(["pg"]);
});

/** The package of PGlite, with one in it that is there already. */
function fakePackage(): { opened: unknown[]; closed: number; load: () => Promise<unknown> } {
  const fake = {
    opened: [] as unknown[],
    closed: 0,
    load: async () => ({
      PGlite: {
        create: async (folder: unknown) => {
          fake.opened.push(folder);
          const close = async (): Promise<void> => void fake.closed++;
          return Object.assign(new Flaky(embedded), { close });
        },
      },
    }),
  };
  return fake;
}

test("a folder that can't be opened is let go of", async () => {
  const client = `pglite:${join(newFolder(), "pg")}`;
  const create = (): Promise<never> => Promise.reject(new RangeError("no room"));
  const store = new PostgresStore({ client, schema }, async () => ({ PGlite: { create } }));
  await rejection(store.list(), RangeError);
  const { load } = fakePackage();
  const again = new PostgresStore({ client, schema }, load);
  expect(await again.list()).toEqual([]);
  await again.close();
});

test("one in memory is opened when it is needed, and closed with the store", async () => {
  const fake = fakePackage();
  const store = new PostgresStore({ client: "pglite:", schema }, fake.load);
  expect(fake.opened).toEqual([]);
  await store.save(start());
  await store.list();
  expect(fake.opened).toEqual([undefined]);
  await store.close();
  expect(fake.closed).toBe(1);
  await store.list();
  expect(fake.opened.length).toBe(2);
  await store.close();
});

test("a store that is closed while it opens can be used again", async () => {
  const fake = fakePackage();
  const store = new PostgresStore({ client: "pglite:", schema }, fake.load);
  const listing = store.list();
  await store.close();
  await listing;
  expect([fake.opened.length, fake.closed]).toEqual([1, 1]);
  await store.list();
  expect(fake.opened.length).toBe(2);
  await store.close();
});

test("one whose tables can't be made is closed again", async () => {
  const fake = fakePackage();
  await open().list();
  await ask("INSERT INTO $schema.migrations (version) VALUES (99)");
  const store = new PostgresStore({ client: "pglite:", schema }, fake.load);
  await rejection(store.list(), ConfigError);
  expect(fake.closed).toBe(1);
});

test("pglite is a name that graphs can use, and its folder is .waymark/pg", async () => {
  const before = process.cwd();
  const folder = newFolder();
  process.chdir(folder);
  const store = getCheckpointStore("pglite");
  try {
    const graph = new StateGraph<Notes>({ checkpoint: { store: "pglite", interval: 1 } })
      .addNode("only", (state) => state.set("n", state.data.n + 1))
      .setEntryPoint("only")
      .setExitPoint("only");
    expect((await graph.execute(start("run"))).data.n).toBe(1);
    expect(existsSync(join(folder, ".waymark", "pg", "PG_VERSION"))).toBe(true);
  } finally {
    await store.close?.();
    process.chdir(before);
  }
});

test("a schema of a newer version is refused", async () => {
  await open().list();
  await ask("INSERT INTO $schema.migrations (version) VALUES (99)");
  for (const store of [open(), open()]) {
    const error = await rejection(store.save(start()), ConfigError);
    expect(error.option).toBe("PostgresStore.schema");
    expect(error.message).toMatch(/has tables of version 99: a newer waymark made them/);
  }
});

test("a schema that is there already, with a name of any kind, is used", async () => {
  schema = `it's "quoted"; DROP`.slice(0, 63);
  await embedded.query(`CREATE SCHEMA "${schema.replaceAll('"', '""')}"`);
  const store = open();
  const claim = await store.claim("run");
  await store.save(start());
  await claim?.release();
  expect(await open().list()).toEqual(["run"]);
});

test("only what changed is written, and loaded from the last whole one on", async () => {
  const store = open({ keep: 100 });
  const state = await saveTimes(store, 20, { n: 0, text: "x".repeat(50_000) });
  const [newest, ...rest] = await store.history("run");
  expect(newest?.bytes).toBeLessThan(1000);
  expect(rest.at(-1)?.bytes).toBeGreaterThan(50_000);
  expect((await open().load<Notes>("run")).toJSON()).toEqual(state.toJSON());
  expect((await open().load<Notes>("run", { step: 0 })).sequence).toBe(20);
  const fifth = rest.find(({ sequence }) => sequence === 5);
  const { checkpointId = "" } = fifth ?? {};
  const loaded = await open().load<Notes>("run", { checkpointId });
  expect([loaded.data.n, loaded.sequence, loaded.bytes]).toEqual([5, 5, fifth?.bytes]);
  expect((await open().load<Notes>("run", { checkpointId, step: 0 })).data.n).toBe(5);
  await rejection(open().load("run", { checkpointId, step: 1 }), CheckpointNotFoundError);
});

test("what a kept checkpoint builds on stays when older ones go", async () => {
  const store = open({ keep: 3, snapshotEvery: 10 });
  const state = await saveTimes(store, 32, { n: 0, text: "x".repeat(500) });
  await store.close();
  expect(await sequences(store)).toEqual([32, 31, 30]);
  // 30 is a patch to what goes back to the whole one at 21.
  expect(await stored()).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]);
  const oldest = (await store.history("run")).at(-1);
  const loaded = await open().load<Notes>("run", { checkpointId: oldest?.checkpointId });
  expect(loaded.data.n).toBe(30);
  expect((await open().load<Notes>("run")).toJSON()).toEqual(state.toJSON());
});

test("many that are too old go in small batches", async () => {
  const flaky = new Flaky(embedded);
  const store = open({ client: flaky, keep: Number.POSITIVE_INFINITY, snapshotEvery: 1 });
  let state = await saveTimes(store, 3, { n: 0 });
  await ask(
    `INSERT INTO $schema.checkpoints SELECT run, -i, -i, 'c' || i, '', step, node, status, "timestamp", reason, bytes, false, body
     FROM "${schema}".checkpoints, generate_series(1, 1200) i WHERE sequence = 1`,
  );
  state = await store.save(State.fromJSON({ ...state.toJSON(), status: "completed" }), { keep: 2 });
  await store.close();
  expect(await stored()).toEqual([3, 4]);
  expect(flaky.asked.filter((text) => text.includes("dead")).length).toBe(3);
});

test("large checkpoints that are too old go sooner", async () => {
  const store = open({ keep: 2, snapshotEvery: 1 });
  await saveTimes(store, 8, { n: 0, text: "x".repeat(200_000) });
  await store.close();
  expect(await stored()).toEqual([7, 8]);
});

test("a State larger than maxBytes is refused, and one larger than warnBytes told", async () => {
  const { context, events } = listen();
  const store = open({ maxBytes: 5000, warnBytes: 2000 });
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
  const store = open();
  const old = await store.save(start());
  await open().delete("run");
  await open().save(start("run", { n: 7 }));
  const error = await rejection(store.save(old.set("n", 1)), CheckpointConflictError);
  expect(error.message).toMatch(/was deleted and started again/);
  expect((await open().load<Notes>("run")).data.n).toBe(7);
});

test.each(["whole", "after the last whole one"])(
  "a corrupt row, %s, is set aside, told, and the newest that does not need it is used",
  async (what) => {
    const store = open({ keep: 100, snapshotEvery: what === "whole" ? 1 : 4 });
    await saveTimes(store, 6, { n: 0, text: "x".repeat(500) });
    await ask(
      `UPDATE $schema.checkpoints SET body = replace(body, '"n"', '"m"') WHERE sequence > 4`,
    );
    await ask(`UPDATE $schema.checkpoints SET body = body || ' ' WHERE sequence > 4`);
    const { context, events } = listen();
    const loaded = await open().load<Notes>("run", {}, context);
    expect([loaded.data.n, loaded.sequence]).toEqual([4, 6]);
    const told = events.filter(({ type }) => type === "checkpoint.quarantine");
    expect(told.length).toBe(what === "whole" ? 2 : 1);
    expect(told[0]?.data).toMatchObject({
      file: expect.stringMatching(/run "run", sequence [56]$/),
    });
    expect(await sequences(store)).not.toContain(5);
    const next = await open().save(loaded.set("n", 9));
    expect(next.sequence).toBe(7);
    expect((await open().load<Notes>("run")).data.n).toBe(9);
  },
);

test("a run of which nothing is whole is an error that says so, each time", async () => {
  const store = open({ snapshotEvery: 1 });
  await saveTimes(store, 2, { n: 0 });
  await ask(`UPDATE $schema.checkpoints SET body = 'nothing'`);
  const first = await rejection(store.load("run"), CheckpointCorruptionError);
  expect(first.message).toMatch(/no checkpoint left that is whole: .*sequence 2.*sequence 1/);
  const second = await rejection(store.load("run"), CheckpointCorruptionError);
  expect(second.message).toMatch(/only corrupt checkpoints, which are quarantined/);
  await rejection(store.load("run", { step: 7 }), CheckpointNotFoundError);
});

test("a row that is corrupt and can't be marked is passed over all the same", async () => {
  const flaky = new Flaky(embedded);
  const store = open({ client: flaky, snapshotEvery: 1 });
  await saveTimes(store, 2, { n: 0 });
  await ask(`UPDATE $schema.checkpoints SET body = 'nothing' WHERE sequence = 2`);
  flaky.before = (text) => (/quarantined = true/.test(text) ? failure("25006") : undefined);
  const { context, events } = listen();
  expect((await store.load<Notes>("run", {}, context)).data.n).toBe(1);
  expect(events.map(({ type }) => type)).toEqual(["checkpoint.error"]);
});

test.each([
  [
    "of another row",
    `UPDATE $schema.checkpoints SET body = (SELECT body FROM "{s}".checkpoints WHERE sequence = 3) WHERE sequence = 4`,
  ],
  ["without what it builds on", "DELETE FROM $schema.checkpoints WHERE sequence IN (1, 2)"],
  ["with a gap before it", "DELETE FROM $schema.checkpoints WHERE sequence = 3"],
])("a checkpoint %s is corrupt", async (_, text) => {
  await saveTimes(open(), 4, { n: 0 });
  await ask(text.replace("{s}", schema));
  const { context, events } = listen();
  const outcome = await open()
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
  const store = open();
  await store.save(start());
  const [{ body } = {}] = await ask("SELECT body FROM $schema.checkpoints");
  const { toLine } = await import("../../src/stores/journal/line.js");
  const header = JSON.parse(String(body)).snapshot;
  const { content, ...rest } = { content: JSON.parse(String(body)).content, ...header };
  const line = toLine("snapshot", JSON.stringify({ ...rest, format: 2 }), JSON.stringify(content));
  await ask("UPDATE $schema.checkpoints SET body = $1", [line.toString()]);
  await expect(store.load("run")).rejects.toThrow(/record of format 2: a newer waymark/);
});

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
  const store = open();
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
  const loaded = await open().load<Notes>(runId);
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

test("a run moves from a journal and back, checkpoint by checkpoint", async () => {
  const journal = new JournalStore({ root: newFolder(), keep: 10 });
  let state = start("run", { n: 0, text: "x".repeat(2000) });
  for (let n = 1; n <= 6; n++) state = await journal.save(state.set("n", n));
  const store = open();
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
  expect(await sequences(store)).toEqual([7, 6, 5, 4, 3]);
  await Promise.all([journal.close(), back.close()]);
});

test("an import that somebody is faster than is a conflict", async () => {
  const source = open();
  await saveTimes(source, 2, { n: 0 });
  const exported = await all(source.export("run"));
  schema = newSchema();
  const store = open();
  const slow = (async function* () {
    for (const [index, one] of exported.entries()) {
      if (index === 1) await open().save(await open().load<Notes>("run"));
      yield one;
    }
  })();
  await rejection(store.import(slow), CheckpointConflictError);
});

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
    const store = open({ retention: { maxAgeDays: 5 } });
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
    const store = open();
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
    expect(await ask("SELECT DISTINCT run FROM $schema.checkpoints")).toHaveLength(3);
  } finally {
    clock.restore();
  }
});

test("more runs than a page are pruned, and one that was saved to meanwhile is left alone", async () => {
  const flaky = new Flaky(embedded);
  const store = open({ client: flaky });
  await store.list();
  await ask(
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
  await ask(`UPDATE $schema.runs SET sequence = 1`);
  const listed = store.prune({ maxRuns: 0 });
  expect(await listed).toHaveLength(250);
  expect(pages).toEqual([100, 100, 50]);
});

test("a run that was saved to between being found and being removed stays", async () => {
  const flaky = new Flaky(embedded);
  const store = open({ client: flaky });
  for (const runId of ["one", "two"]) await saveRun(store, runId, "failed", 1);
  flaky.after = async (text) => {
    if (!/sequence, graph/.test(text)) return undefined;
    flaky.after = () => undefined;
    await open().save((await open().load<Notes>("one")).set("n", 1));
    return undefined;
  };
  expect(await store.prune({ maxRuns: 0 })).toEqual(["two"]);
  expect(await store.list()).toEqual(["one"]);
});

test("runs of no status are none", async () => {
  const store = open();
  await store.save(start());
  expect(await store.runs({ status: [] })).toEqual([]);
  expect(await store.runs({ status: ["pending", "pending"], limit: 5 })).toHaveLength(1);
  expect(await store.runs({ limit: 0 })).toEqual([]);
});

test("a pool that was given stays open, and does not end the process when it loses a connection", async () => {
  const pool = new pg.Pool({ connectionString: "postgres://nobody@127.0.0.1:1/none" });
  const stores = [1, 2].map(() => new PostgresStore({ client: pool, retryFor: 0 }));
  for (const store of stores) await expect(store.list()).rejects.toThrow(/ECONNREFUSED/);
  expect(pool.listenerCount("error")).toBe(1);
  pool.emit("error", new Error("idle"), undefined as never);
  for (const store of stores) await store.close();
  expect(pool.ended).toBe(false);
  await pool.end();
});
