import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import Database from "libsql";
import { afterEach, describe, expect, test } from "vitest";
import { CheckpointCorruptionError, ConfigError, State } from "waymark";
import { SqliteStore } from "waymark/stores/sqlite";
import { type Count, newFolder, openDatabase, saveTimes } from "../folders.js";

const newFile = (): string => join(newFolder(), "waymark.db");
const stores: SqliteStore[] = [];

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

function open(options: ConstructorParameters<typeof SqliteStore>[0]): SqliteStore {
  const store = new SqliteStore(options);
  stores.push(store);
  return store;
}

describe("options", () => {
  test.each([
    [{ path: 5 }, "SqliteStore.path"],
    [{ path: ":memory:" }, "SqliteStore.path"],
    [{ client: {} }, "SqliteStore.client"],
    [{ durability: "none" }, "SqliteStore.durability"],
    [{ readOnly: 1 }, "SqliteStore.readOnly"],
    [{ keep: 1 }, "SqliteStore.keep"],
    [{ snapshotEvery: 0 }, "SqliteStore.snapshotEvery"],
    [{ file: "x" }, "SqliteStore.file"],
    [{ path: "x", client: new Database(":memory:") }, "SqliteStore.path"],
  ])("refuse %j", (options, name) => {
    expect(() => new SqliteStore(options as never)).toThrow(ConfigError);
    expect(() => new SqliteStore(options as never)).toThrow(name);
  });

  test("name the package to install if there is no driver", async () => {
    const store = new SqliteStore({ path: newFile() }, { load: () => undefined });
    await expect(store.save(State.create({ n: 1 }))).rejects.toThrow("npm install better-sqlite3");
  });

  test("open the file with the first available driver", async () => {
    const asked: string[] = [];
    const load = (name: string): unknown => {
      asked.push(name);
      return name === "libsql" ? createRequire(import.meta.url)(name) : undefined;
    };
    const store = new SqliteStore({ path: newFile() }, { load });
    await saveTimes(store, 1);
    expect(asked).toEqual(["node:sqlite", "bun:sqlite", "better-sqlite3", "libsql"]);
  });

  test.each(["node:sqlite", "bun:sqlite", "better-sqlite3"])(
    "open %s by its own name",
    async (name) => {
      const opened: unknown[] = [];
      class Driver {
        constructor(path: string, options: object) {
          opened.push(options);
          const database = openDatabase(path);
          Object.assign(this, {
            exec: (sql: string) => database.exec(sql),
            prepare: (sql: string) => database.prepare(sql),
            close: () => database.close(),
          });
        }
      }
      const module = Object.assign(Driver, { DatabaseSync: Driver, Database: Driver });
      const load = (one: string): unknown => (one === name ? module : undefined);
      const path = newFile();
      await saveTimes(new SqliteStore({ path }, { load }), 2);
      const reader = new SqliteStore({ path, readOnly: true }, { load });
      expect((await reader.load<Count>("run")).data.n).toBe(2);
      await reader.close();
      expect(opened).toHaveLength(2);
      expect(JSON.stringify(opened[1]).toLowerCase()).toContain('"readonly":true');
    },
  );
});

describe("the file", () => {
  test("is readable only by its owner, whatever the umask", async () => {
    const before = process.umask(0);
    try {
      const folder = join(newFolder(), "a", "b");
      const path = join(folder, "waymark.db");
      const store = open({ path });
      await store.save(State.create({ n: 1 }));
      const modes = readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o777);
      expect(modes).toEqual([0o600, 0o600, 0o600]);
      expect(statSync(folder).mode & 0o777).toBe(0o700);
    } finally {
      process.umask(before);
    }
  });

  test("is all that is left after closing, and opens again", async () => {
    const path = newFile();
    const store = new SqliteStore({ path });
    let state = await store.save(State.create<Count>({ n: 1 }, { runId: "run" }));
    await store.close();
    expect(readdirSync(join(path, ".."))).toEqual(["waymark.db"]);
    state = await store.save(state.set("n", 2));
    expect(state.sequence).toBe(2);
    await store.close();
    expect(readdirSync(join(path, ".."))).toEqual(["waymark.db"]);
  });

  test("always carries our signature while it is being created", async () => {
    const path = newFile();
    const signatures = new Set<string>();
    class Watched {
      constructor() {
        const database = openDatabase(path);
        const exec = (sql: string): void => {
          database.exec(sql);
          // What another process would find, at any moment.
          signatures.add(readFileSync(path).toString("latin1", 68, 72));
        };
        const prepare = (sql: string) => database.prepare(sql);
        Object.assign(this, { exec, prepare, close: () => database.close() });
      }
    }
    const load = (name: string): unknown => (name === "better-sqlite3" ? Watched : undefined);
    await saveTimes(new SqliteStore({ path }, { load }), 1);
    expect([...signatures]).toEqual(["", "wymk"]);
  });

  test("is not created by reading", async () => {
    const path = newFile();
    const store = open({ path });
    expect(await store.list()).toEqual([]);
    expect(await store.runs()).toEqual([]);
    expect(await store.history("run")).toEqual([]);
    expect(await store.find("id")).toBeUndefined();
    expect(await store.prune({ maxRuns: 0 })).toEqual([]);
    await store.delete("run");
    await expect(store.load("run")).rejects.toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });
    expect(existsSync(path)).toBe(false);
  });

  test("of another kind is refused and left as it is", async () => {
    const path = newFile();
    writeFileSync(path, "dear diary".repeat(1000));
    const store = open({ path });
    for (const use of [() => store.list(), () => store.load("run"), () => store.claim("run")]) {
      const error: unknown = await use().catch((one: unknown) => one);
      expect(error).toBeInstanceOf(CheckpointCorruptionError);
      expect(String(error)).toContain(path);
    }
    await expect(store.save(State.create({ n: 1 }))).rejects.toMatchObject({
      code: "CHECKPOINT_SAVE",
    });
    expect(readFileSync(path, "utf8")).toBe("dear diary".repeat(1000));
    expect(readdirSync(join(path, ".."))).toEqual(["waymark.db"]);
  });

  test("of another application is refused and left as it is", async () => {
    const path = newFile();
    const other = openDatabase(path);
    other.exec("CREATE TABLE notes (text); INSERT INTO notes VALUES ('milk')");
    other.close();
    const before = readFileSync(path);
    await expect(open({ path }).list()).rejects.toThrow("another application");
    await expect(open({ path, readOnly: true }).list()).rejects.toThrow("another application");
    expect(readFileSync(path).equals(before)).toBe(true);
    await expect(open({ client: openDatabase(path) }).list()).rejects.toThrow(
      "another application",
    );
  });

  test("is used if Litestream created it empty", async () => {
    const path = newFile();
    const litestream = openDatabase(path);
    litestream.exec(`
      PRAGMA journal_mode = WAL;
      CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);
      CREATE TABLE _litestream_lock (id INTEGER);
    `);
    const store = open({ path });
    expect(await store.list()).toEqual([]);
    await saveTimes(store, 2);
    expect(await store.list()).toEqual(["run"]);
    litestream.close();
  });

  test("of a newer version is refused", async () => {
    const path = newFile();
    await saveTimes(new SqliteStore({ path }), 1);
    const other = openDatabase(path);
    other.exec("PRAGMA user_version = 99");
    other.close();
    const error: unknown = await open({ path })
      .load("run")
      .catch((one: unknown) => one);
    expect(error).toBeInstanceOf(ConfigError);
    expect(String(error)).toContain("has version 99");
  });

  test("becomes a database if it was empty", async () => {
    const path = newFile();
    writeFileSync(path, "");
    const store = open({ path });
    expect(await store.list()).toEqual([]);
    await saveTimes(store, 1);
    expect(await store.list()).toEqual(["run"]);
  });

  test("is refused if it is a folder", async () => {
    const path = newFile();
    mkdirSync(path);
    await expect(open({ path }).list()).rejects.toBeInstanceOf(CheckpointCorruptionError);
    await expect(open({ path: join(path, "x", "y.db") }).list()).resolves.toEqual([]);
  });

  test.skipIf(process.getuid?.() === 0)(
    "can't be created in a read-only folder, with an error",
    async () => {
      const folder = newFolder();
      chmodSync(folder, 0o500);
      await expect(
        open({ path: join(folder, "waymark.db") }).save(State.create({ n: 1 })),
      ).rejects.toMatchObject({ code: "CHECKPOINT_SAVE" });
    },
  );
});

describe("read-only", () => {
  test("reads a missing file as empty and does not create it", async () => {
    const path = newFile();
    const reader = open({ path, readOnly: true });
    expect(await reader.list()).toEqual([]);
    await expect(reader.load("run")).rejects.toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });
    await saveTimes(new SqliteStore({ path }), 1);
    expect(await reader.list()).toEqual(["run"]);
  });

  test("reads while another process writes", async () => {
    const path = newFile();
    const writer = open({ path });
    const reader = open({ path, readOnly: true });
    let state = await writer.save(State.create<Count>({ n: 1 }, { runId: "run" }));
    for (let n = 2; n < 20; n++) {
      state = await writer.save(state.set("n", n));
      expect((await reader.load<Count>("run")).data.n).toBe(n);
      expect((await reader.runs())[0]?.runId).toBe("run");
    }
    await reader.close();
    await writer.close();
  });

  test("changes nothing and refuses to write", async () => {
    const path = newFile();
    await saveTimes(new SqliteStore({ path }), 3);
    const before = readFileSync(path);
    const reader = open({ path, readOnly: true });
    const state = await reader.load<Count>("run");
    for (const write of [
      () => reader.save(state.set("n", 9)),
      () => reader.claim("run"),
      () => reader.delete("run"),
      () => reader.prune({ maxRuns: 0, includeAbandoned: true, maxAgeDays: 0 }),
    ]) {
      await expect(write()).rejects.toThrow("SqliteStore.readOnly is true");
    }
    await reader.close();
    expect(readdirSync(join(path, ".."))).toEqual(["waymark.db"]);
    expect(readFileSync(path).equals(before)).toBe(true);
  });
});

test("pages are returned to the file system after runs are removed", async () => {
  const path = newFile();
  const store = new SqliteStore({ path });
  const text = "x".repeat(50_000);
  for (let run = 0; run < 40; run++) {
    await store.save(State.create({ text: `${run}${text}` }, { runId: `run-${run}` }));
  }
  await store.close();
  const before = statSync(path).size;
  for (const runId of (await store.list()).slice(1)) await store.delete(runId);
  await store.close();
  expect(before).toBeGreaterThan(2_000_000);
  expect(statSync(path).size).toBeLessThan(200_000);
  expect(await store.list()).toHaveLength(1);
  await store.close();
});

test("a given client stays open", async () => {
  const client = new Database(":memory:");
  const store = new SqliteStore({ client });
  await saveTimes(store, 2);
  expect((await store.load<Count>("run")).data.n).toBe(2);
  expect(client.prepare("SELECT count(*) AS count FROM runs").get()).toMatchObject({ count: 1 });
});
