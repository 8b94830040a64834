import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { describe, expect, test } from "vitest";
import {
  CheckpointConflictError,
  CheckpointSaveError,
  isWaymarkError,
  State,
  StateGraph,
} from "waymark";
import { type SqliteClient, SqliteStore } from "waymark/stores/sqlite";
import { below, seeded, seedOfRun } from "../../crash/random.js";
import { type Count, newFolder, openDatabase, saveTimes } from "../folders.js";

/** A client whose statements fail while `fails` says so. */
function failing(
  fails: (sql: string, params: readonly unknown[]) => Error | undefined,
  database = new Database(":memory:"),
): SqliteClient {
  return {
    exec: (sql) => database.exec(sql),
    prepare: (sql) => {
      const statement = database.prepare(sql);
      return {
        run: (...params) => {
          const error = fails(sql, params);
          if (error !== undefined) throw error;
          return statement.run(...params);
        },
        get: (...params) => statement.get(...params),
        all: (...params) => statement.all(...params),
      };
    },
  };
}

const sqliteError = (code: string, message: string): Error =>
  Object.assign(new Error(message), { code });

describe("faults of the database", () => {
  test("a full disk leaves a run that resumes once there is room", async () => {
    const client = new Database(":memory:");
    const store = new SqliteStore({ client, keep: Number.POSITIVE_INFINITY });
    let state = await store.save(
      State.create<Count & { text: string }>({ n: 0, text: "" }, { runId: "run" }),
    );
    client.exec("PRAGMA max_page_count = 60");
    const error: unknown = await (async () => {
      for (let n = 1; ; n++) {
        state = await store.save(state.merge({ n, text: `${n}`.repeat(20_000) }));
      }
    })().catch((one: unknown) => one);
    expect(error).toBeInstanceOf(CheckpointSaveError);
    expect(String(error)).toContain("make room, then resume the run");
    expect(String(error)).toContain("was not saved");
    const loaded = await store.load<Count>("run");
    expect(loaded.data.n).toBe(state.data.n);
    client.exec("PRAGMA max_page_count = 1000000");
    expect((await store.save(loaded.set("n", 99))).sequence).toBe(state.sequence + 1);
  });

  test("one record that can't be written fails alone", async () => {
    const store = new SqliteStore({
      client: failing((sql, params) =>
        sql.includes("INTO checkpoints") && params.some((one) => String(one).includes('"bad"'))
          ? sqliteError("SQLITE_TOOBIG", "string or blob too big")
          : undefined,
      ),
    });
    const runIds = ["a", "b", "bad", "c", "d"];
    const saves = await Promise.allSettled(
      runIds.map((runId) => store.save(State.create({ n: 1 }, { runId }))),
    );
    expect(saves.map(({ status }) => status)).toEqual([
      "fulfilled",
      "fulfilled",
      "rejected",
      "fulfilled",
      "fulfilled",
    ]);
    expect((await store.list()).sort()).toEqual(["a", "b", "c", "d"]);
  });

  test("a failed commit may have happened, and the run resumes either way", async () => {
    let fails = false;
    const store = new SqliteStore({
      client: failing((sql) =>
        fails && sql === "COMMIT" ? sqliteError("SQLITE_IOERR_FSYNC", "disk I/O error") : undefined,
      ),
    });
    const state = await store.save(State.create<Count>({ n: 1 }, { runId: "run" }));
    fails = true;
    await expect(store.save(state.set("n", 2))).rejects.toThrow("may not have been saved");
    fails = false;
    expect((await store.save(state.set("n", 3))).sequence).toBe(2);
    expect((await store.load<Count>("run")).data.n).toBe(3);
  });

  test("a first save with an unknown outcome is not built on by another run with its id", async () => {
    let fails = true;
    const database = new Database(":memory:");
    const store = new SqliteStore({
      client: failing((sql) => {
        if (!fails || sql !== "COMMIT") return undefined;
        database.exec("COMMIT");
        return sqliteError("SQLITE_IOERR_FSYNC", "disk I/O error");
      }, database),
    });
    const begunAt = (startedAt: string) =>
      State.fromJSON<Count>({
        ...State.create<Count>({ n: 1 }, { runId: "run" }).toJSON(),
        startedAt,
      });
    const first = begunAt("2026-01-01T00:00:00.000Z");
    await expect(store.save(first)).rejects.toThrow("may not have been saved");
    fails = false;
    const other = begunAt("2026-01-01T00:00:00.001Z");
    await expect(store.save(other)).rejects.toThrow(CheckpointConflictError);
    expect((await store.save(first.set("n", 2))).sequence).toBe(2);
  });

  test("a lock is waited for without blocking, up to a limit", async () => {
    const path = join(newFolder(), "waymark.db");
    const store = new SqliteStore({ path }, { busyFor: 300 });
    const state = await store.save(State.create<Count>({ n: 1 }, { runId: "run" }));
    const other = openDatabase(path);
    other.exec("BEGIN IMMEDIATE");
    let turns = 0;
    const timer = setInterval(() => turns++, 5);
    await expect(store.save(state.set("n", 2))).rejects.toThrow(
      "another process keeps the database locked",
    );
    expect(turns).toBeGreaterThan(5);
    clearInterval(timer);
    setTimeout(() => other.exec("COMMIT"), 50);
    expect((await store.save(state.set("n", 2))).sequence).toBe(2);
    other.close();
    await store.close();
  });

  test("a run that only saves does not block the event loop", async () => {
    const store = new SqliteStore({ client: new Database(":memory:") });
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const graph = new StateGraph<Count>({ maxIterations: 5000, checkpoint: { store, interval: 1 } })
      .addNode("count", (state) => ({ n: state.data.n + 1 }))
      .addNode("end", (state) => state)
      .addEdge("count", "count", (state) => state.data.n < 1000)
      .addEdge("count", "end")
      .setEntryPoint("count")
      .setExitPoint("end");
    await graph.execute(State.create<Count>({ n: 0 }));
    clearInterval(timer);
    expect(turns).toBeGreaterThan(3);
  });
});

describe("damage", () => {
  const SAVES = 12;
  const FLIPS = process.env.MODE === "torture" ? 3000 : 250;

  test("a changed byte gives an error or an older checkpoint, never wrong data", async () => {
    const seed = seedOfRun();
    console.log(`${FLIPS} flips with SEED=${seed}`);
    const random = seeded(seed);
    const folder = newFolder();
    const whole = join(folder, "whole.db");
    const store = new SqliteStore({
      path: whole,
      snapshotEvery: 4,
      keep: Number.POSITIVE_INFINITY,
    });
    const runIds = ["run", "large"];
    for (const runId of runIds) {
      let state = State.create<Count & { text: string }>({ n: 0, text: "" }, { runId });
      for (let n = 1; n <= SAVES; n++) {
        const text = `${runId} ${n} `.repeat(runId === "large" ? 2000 : 10);
        state = await store.save(state.merge({ n, text }));
      }
    }
    await store.close();
    const bytes = readFileSync(whole);
    const outcomes = { whole: 0, older: 0, error: 0 };
    for (let flip = 0; flip < FLIPS; flip++) {
      // Most of what SQLite itself needs is on the first page.
      const at = flip < 100 ? flip : below(random, flip % 4 === 0 ? 4096 : bytes.length);
      const path = join(folder, "flipped.db");
      const flipped = Buffer.from(bytes);
      flipped[at] = (flipped[at] ?? 0) ^ (1 + below(random, 255));
      writeFileSync(path, flipped);
      const damaged = new SqliteStore({ path });
      for (const runId of runIds) {
        try {
          const { n, text } = (await damaged.load<Count & { text: string }>(runId)).data;
          expect(text, `byte ${at}`).toBe(`${runId} ${n} `.repeat(runId === "large" ? 2000 : 10));
          outcomes[n === SAVES ? "whole" : "older"]++;
        } catch (error) {
          expect(isWaymarkError(error), `byte ${at}: ${error}`).toBe(true);
          expect(["CHECKPOINT_CORRUPT", "CHECKPOINT_NOT_FOUND", "CONFIG"]).toContain(
            isWaymarkError(error) && error.code,
          );
          outcomes.error++;
        }
      }
      for (const use of [
        () => damaged.list(),
        () => damaged.runs(),
        () => damaged.history("run"),
      ]) {
        await use().catch((error: unknown) => expect(isWaymarkError(error), `${error}`).toBe(true));
      }
      await damaged.close();
    }
    console.log(outcomes);
    expect(outcomes.error).toBeGreaterThan(0);
    expect(outcomes.whole).toBeGreaterThan(0);
  });

  test("a damaged page gives a typed error naming the file, which stays as it is", async () => {
    const path = join(newFolder(), "waymark.db");
    const store = new SqliteStore({ path });
    await saveTimes(store, 5);
    const bytes = readFileSync(path);
    // All pages but the first, which holds the schema.
    bytes.fill(0xee, 4096);
    writeFileSync(path, bytes);
    const error: unknown = await store.load("run").catch((one: unknown) => one);
    expect(error).toMatchObject({ code: "CHECKPOINT_CORRUPT" });
    expect(String(error)).toContain(path);
    const findings: unknown[] = [];
    await expect(
      (async () => {
        for await (const finding of store.verify()) findings.push(finding);
      })(),
    ).rejects.toMatchObject({ code: "CHECKPOINT_CORRUPT" });
    expect(findings[0]).toMatchObject({ problem: "database", runId: "" });
    await store.close();
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });

  test("a manually edited record is set aside, and the previous one is used", async () => {
    const path = join(newFolder(), "waymark.db");
    const store = new SqliteStore({ path, snapshotEvery: 1, keep: Number.POSITIVE_INFINITY });
    await saveTimes(store, 3);
    const other = openDatabase(path);
    other.exec("UPDATE checkpoints SET content = replace(content, '3', '4') WHERE sequence = 3");
    other.close();
    const loaded = await store.load<Count>("run");
    expect(loaded.data.n).toBe(2);
    const findings = [];
    for await (const finding of store.verify()) findings.push(finding);
    expect(findings).toMatchObject([{ runId: "run", sequence: 3, problem: "quarantined" }]);
    expect((await store.save(loaded.set("n", 5))).sequence).toBe(4);
    await store.close();
    copyFileSync(path, `${path}.copy`);
    const copy = new SqliteStore({ path: `${path}.copy`, readOnly: true });
    expect((await copy.load<Count>("run")).data.n).toBe(5);
    await copy.close();
  });

  test("a run whose newest records were set aside is listed by the previous one", async () => {
    const path = join(newFolder(), "waymark.db");
    const store = new SqliteStore({ path, snapshotEvery: 1, keep: Number.POSITIVE_INFINITY });
    let state = await saveTimes(store, 1);
    for (const status of ["paused", "failed", "completed"] as const) {
      state = await store.save(State.fromJSON<Count>({ ...state.toJSON(), status }));
    }
    const other = openDatabase(path);
    other.exec("UPDATE checkpoints SET content = content || ' ' WHERE sequence > 2");
    other.close();
    const loaded = await store.load<Count>("run");
    expect([loaded.status, loaded.sequence]).toEqual(["paused", 4]);
    expect(await store.runs({ status: ["completed", "failed"] })).toEqual([]);
    const [listed] = await store.runs({ status: "paused" });
    expect(listed).toMatchObject({ runId: "run", status: "paused" });
    expect((await store.save(loaded.set("n", 5))).sequence).toBe(5);
    await store.close();
  });
});
