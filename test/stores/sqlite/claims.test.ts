import { hostname } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { expect, test } from "vitest";
import { State } from "waymark";
import { SqliteStore } from "waymark/stores/sqlite";
import { type Count, newFolder, openDatabase } from "../folders.js";

const newFile = (): string => join(newFolder(), "waymark.db");

test("a claim names its holder and can be claimed again once released", async () => {
  const path = newFile();
  const [one, two] = [new SqliteStore({ path }), new SqliteStore({ path })];
  const claim = await one.claim("run");
  expect(await two.claim("run")).toBeUndefined();
  expect(await two.holder("run")).toEqual({
    host: hostname(),
    pid: process.pid,
    since: expect.stringMatching(/^\d{4}-/),
  });
  // A claim is no run.
  expect(await two.list()).toEqual([]);
  await claim?.release();
  expect(await one.holder("run")).toBeUndefined();
  const next = await two.claim("run");
  expect(next?.epoch).toBeGreaterThan(claim?.epoch ?? 0);
  await two.close();
  expect(await one.holder("run")).toBeUndefined();
  await one.close();
});

test("a claimant that lost its claim can neither save nor delete, even after a delete and a restart", async () => {
  const path = newFile();
  const [one, two] = [new SqliteStore({ path }), new SqliteStore({ path })];
  await one.claim("run");
  const state = await one.save(State.create<Count>({ n: 1 }, { runId: "run" }));
  // As if its lease had ended while it could not renew it.
  const database = openDatabase(path);
  database.exec("UPDATE runs SET lease_until = 1");
  database.close();
  const claim = await two.claim("run");
  await expect(one.save(state.set("n", 2))).rejects.toThrow("has since been claimed by process");
  await expect(one.delete("run")).rejects.toMatchObject({ code: "CHECKPOINT_CONFLICT" });
  await two.delete("run");
  await claim?.release();
  await expect(one.save(State.create({ n: 1 }, { runId: "run" }))).rejects.toMatchObject({
    code: "CHECKPOINT_CONFLICT",
  });
  expect(await two.list()).toEqual([]);
  await one.close();
  await two.close();
});

test("a lease is renewed, and its loss aborts the signal", async () => {
  const path = newFile();
  const store = new SqliteStore({ path });
  const claim = await store.claim("run", { ttl: 150 });
  const database = openDatabase(path);
  const until = (): number =>
    Number(
      (database.prepare("SELECT lease_until FROM runs").get() as { lease_until: number })
        .lease_until,
    );
  const first = until();
  await expect.poll(until, { interval: 20 }).toBeGreaterThan(first);
  database.exec("UPDATE runs SET epoch = epoch + 1");
  await expect.poll(() => claim?.lost?.aborted, { interval: 20 }).toBe(true);
  database.close();
  await store.close();
});

test("a deleted run stays claimed, and prune leaves it alone", async () => {
  const store = new SqliteStore({ client: new Database(":memory:") });
  const claim = await store.claim("run");
  await store.save(State.create({ n: 1 }, { runId: "run" }));
  expect(await store.prune({ maxAgeDays: 0, includeAbandoned: true })).toEqual([]);
  await store.delete("run");
  expect(await store.list()).toEqual([]);
  expect(await store.holder("run")).toBeDefined();
  await store.save(State.create({ n: 2 }, { runId: "run" }));
  expect(await store.list()).toEqual(["run"]);
  await claim?.release();
  await store.close();
});

test("each page of runs is read by an index", async () => {
  const client = new Database(":memory:");
  const texts: string[] = [];
  const store = new SqliteStore({
    client: {
      exec: (sql) => client.exec(sql),
      prepare: (sql) => {
        texts.push(sql);
        return client.prepare(sql);
      },
    },
  });
  for (const runId of ["a", "b"]) {
    const metadata = { tenant: runId, 'odd "key"\\': 1, flag: true };
    await store.save(State.create({ n: 1 }, { runId, metadata }));
  }
  const cursor = { runId: "b", savedAt: "9999-01-01T00:00:00.000Z" };
  for (const filter of [{}, { graph: "g" }, { cursor }, { before: cursor.savedAt }]) {
    await store.runs({ ...filter, limit: 10 });
    const text = (texts.findLast((sql) => sql.includes("found")) ?? "").replaceAll("?", "1");
    const plan = client.prepare(`EXPLAIN QUERY PLAN ${text}`).all() as { detail: string }[];
    const searches = plan.filter(({ detail }) => /\bruns\b/.test(detail));
    expect(searches.length).toBeGreaterThan(0);
    for (const { detail } of searches) expect(detail).toMatch(/^SEARCH runs USING INDEX/);
  }
  const find = async (metadata: Record<string, string | number | boolean>) =>
    (await store.runs({ metadata })).map(({ runId }) => runId).sort();
  expect(await find({ tenant: "a" })).toEqual(["a"]);
  expect(await find({ tenant: "a", flag: true })).toEqual(["a"]);
  expect(await find({ flag: 1 })).toEqual([]);
  expect(await find({ 'odd "key"\\': 1 })).toEqual(["a", "b"]);
  expect(await find({ 'odd "key"\\': "1" })).toEqual([]);
});
