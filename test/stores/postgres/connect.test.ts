import { chmodSync, existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import {
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  ConfigError,
} from "waymark";
import {
  type EmbeddedPostgres,
  PostgresStore,
  type PostgresStoreOptions,
} from "waymark/stores/postgres";
import { rejection, thrown } from "../../graphs.js";
import { listen, newFolder } from "../folders.js";
import { failure } from "./flaky.js";
import { newSchema } from "./server.js";
import { start, Tables } from "./tables.js";

const tables = Tables.use();

test.each<[string, unknown]>([
  ["PostgresStore", undefined],
  ["PostgresStore.client", {}],
  ["PostgresStore.client", { client: undefined }],
  ["PostgresStore.client", { client: 7 }],
  ["PostgresStore.client", { client: null }],
  ["PostgresStore.client", { client: {} }],
  ["PostgresStore.client", { client: { query() {} } }],
  ["PostgresStore.client", { client: new pg.Client() }],
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
  ["PostgresStore.statementTimeout", { statementTimeout: 0 }],
  ["PostgresStore.prepare", { prepare: 1 }],
  ["PostgresStore.readOnly", { readOnly: "yes" }],
  ["codec.compress", { codec: { compress: "zip" } }],
  ["PostgresStore.root", { root: "x" }],
])("refuses a wrong %s", (option, options) => {
  const whole =
    options === undefined || Object.hasOwn(options as object, "client") || option.endsWith("t")
      ? options
      : { client: tables.pool, ...(options as object) };
  const error = thrown(() => new PostgresStore(whole as PostgresStoreOptions), ConfigError);
  expect(error.option).toBe(option);
  expect(error.message).not.toContain("secret");
});

test.each([
  ["pg", "postgres://localhost/x"],
  ["@electric-sql/pglite", "pglite:"],
])("names the package to install if %s is missing", async (name, client) => {
  const missing = failure("ERR_MODULE_NOT_FOUND", `Cannot find package '${name}'`);
  const store = new PostgresStore({ client }, () => Promise.reject(missing));
  const error = await rejection(store.list(), ConfigError);
  expect(error.message).toBe(`PostgresStore.client needs the package ${name}: npm install ${name}`);
  const broken = new PostgresStore({ client }, () => Promise.reject(new RangeError("broken")));
  const other = await rejection(broken.save(start()), CheckpointSaveError);
  expect(other.message).toMatch(/^the checkpoint of run "run" was not saved in .*: broken$/);
  expect(other.cause).toBeInstanceOf(RangeError);
});

/** What PGlite is to the store, on a server. */
function embedded(): EmbeddedPostgres {
  return {
    query: (text, params) => tables.pool.query(text, params),
    async transaction(work) {
      const connection = await tables.pool.connect();
      try {
        await connection.query("BEGIN");
        const result = await work({ query: (text, params) => connection.query(text, params) });
        await connection.query("COMMIT");
        return result;
      } finally {
        connection.release();
      }
    },
  };
}

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
          return Object.assign(embedded(), { close });
        },
      },
    }),
  };
  return fake;
}

test("a folder that can't be opened is released", async () => {
  const client = `pglite:${join(newFolder(), "pg")}`;
  const create = (): Promise<never> => Promise.reject(new RangeError("no room"));
  const store = new PostgresStore({ client, schema: tables.schema }, async () => ({
    PGlite: { create },
  }));
  await expect(store.list()).rejects.toThrow("no room");
  const { load } = fakePackage();
  const again = new PostgresStore({ client, schema: tables.schema }, load);
  expect(await again.list()).toEqual([]);
  await again.close();
});

test("an in-memory database is opened on demand and closed with the store", async () => {
  const fake = fakePackage();
  const store = new PostgresStore({ client: "pglite:", schema: tables.schema }, fake.load);
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
  const store = new PostgresStore({ client: "pglite:", schema: tables.schema }, fake.load);
  const listing = store.list();
  await store.close();
  await listing;
  expect([fake.opened.length, fake.closed]).toEqual([1, 1]);
  await store.list();
  expect(fake.opened.length).toBe(2);
  await store.close();
});

test("a database whose tables can't be created is closed again", async () => {
  const fake = fakePackage();
  await tables.open().list();
  await tables.ask("INSERT INTO $schema.migrations (version) VALUES (99)");
  const store = new PostgresStore({ client: "pglite:", schema: tables.schema }, fake.load);
  await rejection(store.list(), ConfigError);
  expect(fake.closed).toBe(1);
});

test("a schema of a newer version is refused", async () => {
  await tables.open().list();
  await tables.ask("INSERT INTO $schema.migrations (version) VALUES (99)");
  for (const store of [tables.open(), tables.open()]) {
    const error = await rejection(store.save(start()), ConfigError);
    expect(error.option).toBe("PostgresStore.schema");
    expect(error.message).toMatch(/has tables of version 99, which a newer waymark made/);
  }
});

test("an existing schema is used, whatever its name", async () => {
  tables.schema = `${newSchema()} it's "quoted"; DROP`;
  await tables.ask("CREATE SCHEMA $schema");
  const store = tables.open();
  const claim = await store.claim("run");
  await store.save(start());
  await claim?.release();
  expect(await tables.open().list()).toEqual(["run"]);
});

test("a role that can't create schemas can use an existing one", async () => {
  const role = `waymark_${process.pid}`;
  await tables.ask(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  const url = Object.assign(new URL(tables.server.url), { username: role, password: "secret" });
  const pool = tables.server.pool({ connectionString: url.href });
  const store = tables.open({ client: pool });
  const error = await rejection(store.save(start()), CheckpointSaveError);
  expect(error.message).toMatch(/needs CREATE on the database once/);
  await tables.ask(`CREATE SCHEMA $schema AUTHORIZATION ${role}`);
  expect((await store.save(start())).sequence).toBe(1);
  await tables.ask("DROP SCHEMA $schema CASCADE");
  await pool.end();
  await tables.ask(`DROP ROLE ${role}`);
});

test("an invalid address is refused on first use, without showing its password", async () => {
  const store = new PostgresStore({ client: "postgres://user:secret@host:99999/db" });
  for (const asked of [() => store.list(), () => store.save(start())]) {
    const error = await rejection(asked(), ConfigError);
    expect(error.option).toBe("PostgresStore.client");
    expect(error.message).not.toContain("secret");
  }
  await store.close();
});

test("a given pool stays open, and a lost connection does not end the process", async () => {
  const pool = new pg.Pool({ connectionString: "postgres://nobody@127.0.0.1:1/none" });
  const stores = [1, 2].map(() => new PostgresStore({ client: pool, retryFor: 0 }));
  for (const store of stores) await expect(store.list()).rejects.toThrow(/ECONNREFUSED/);
  expect(pool.listenerCount("error")).toBe(1);
  pool.emit("error", new Error("idle"), undefined as never);
  for (const store of stores) await store.close();
  expect(pool.ended).toBe(false);
  await pool.end();
});

test("a connection lost between two statements does not end the process", async () => {
  await tables.open().save(start());
  const pool = tables.server.pool({ max: 1 });
  const store = tables.open({ client: pool });
  expect(await store.list()).toEqual(["run"]);
  const listeners: number[] = [];
  // That of the pool goes in this moment, before whoever has asked for the connection has it.
  pool.on("acquire", (connection) => listeners.push(connection.listenerCount("error") - 1));
  await store.delete("run");
  expect(await store.list()).toEqual([]);
  expect(listeners).toEqual([1, 1]);
  await pool.end();
});

test("a read-only store creates no tables, and has no runs until they exist", async () => {
  const reader = tables.open({ readOnly: true });
  expect([await reader.list(), await reader.runs(), await reader.history("run")]).toEqual([
    [],
    [],
    [],
  ]);
  await rejection(reader.load("run"), CheckpointNotFoundError);
  expect(await reader.prune({ maxRuns: 0, dryRun: true })).toEqual([]);
  expect(await reader.holder("run")).toBeUndefined();
  expect(await reader.facts()).toMatchObject({ hasTables: false, canWrite: true });
  expect(await tables.ask("SELECT FROM pg_namespace WHERE nspname = $1", [tables.schema])).toEqual(
    [],
  );

  const writer = tables.open();
  const saved = await writer.save(start());
  const claim = await writer.claim("run");
  expect((await reader.load("run")).toJSON()).toEqual(saved.toJSON());
  expect(await reader.holder("run")).toMatchObject({ pid: process.pid });
  expect(await reader.facts()).toMatchObject({ hasTables: true, canWrite: true });
  await claim?.release();
});

test("a read-only store refuses to write and sets nothing aside", async () => {
  const saved = await tables.open().save(start());
  const reader = tables.open({ readOnly: true });
  for (const write of [
    () => reader.save(saved.set("n", 1)),
    () => reader.save(start("new")),
    () => reader.delete("run"),
    () => reader.claim("run"),
    () => reader.import([{ state: start("new"), parentId: "" }] as never),
  ]) {
    expect((await rejection(write(), ConfigError)).option).toBe("PostgresStore.readOnly");
  }
  await tables.ask("UPDATE $schema.checkpoints SET content = '{}'");
  const { context, events } = listen();
  await rejection(reader.load("run", {}, context), CheckpointCorruptionError);
  expect(events.map(({ type }) => type)).toEqual(["checkpoint.error"]);
  expect(await tables.ask("SELECT FROM $schema.checkpoints WHERE aside <> 0")).toEqual([]);
});

test("a read-only store does not create a missing folder", async () => {
  const folder = join(newFolder(), "pg");
  const reader = new PostgresStore({ client: `pglite:${folder}`, readOnly: true });
  expect(await reader.list()).toEqual([]);
  expect(await reader.facts()).toBeUndefined();
  expect(existsSync(folder)).toBe(false);
  writeFileSync(folder, "");
  const error = await rejection(reader.list(), ConfigError);
  expect(error.message).toMatch(/must name a folder of PGlite .*, which is a file$/);
});

test.each([true, false])(
  "a folder of foreign files is left alone (readOnly %s)",
  async (readOnly) => {
    const folder = newFolder();
    chmodSync(folder, 0o755);
    writeFileSync(join(folder, "notes.txt"), "mine");
    const store = new PostgresStore({ client: `pglite:${folder}`, readOnly });
    const error = await rejection(store.list(), ConfigError);
    expect(error.message).toMatch(
      /must name a folder of PGlite .*, which is a folder of other files$/,
    );
    expect(readdirSync(folder)).toEqual(["notes.txt"]);
    expect(statSync(folder).mode & 0o777).toBe(0o755);
  },
);

test("a read-only store leaves an empty folder empty", async () => {
  const folder = newFolder();
  const reader = new PostgresStore({ client: `pglite:${folder}`, readOnly: true });
  expect(await reader.list()).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
});

test("a folder that PGlite can't open is named and not treated as open", async () => {
  const folder = newFolder();
  const create = (): Promise<never> => Promise.reject({ errno: 2 });
  const store = new PostgresStore({ client: `pglite:${folder}` }, async () => ({
    PGlite: { create },
  }));
  for (const asked of [() => store.save(start()), () => store.list()]) {
    const error = await rejection(asked(), ConfigError);
    expect(error.message).toMatch(/must name a folder .*, which PGlite can't open: error 2$/);
  }
});
