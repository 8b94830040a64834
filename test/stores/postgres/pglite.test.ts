import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CheckpointStore, ConfigError, getCheckpointStore, StateGraph } from "waymark";
import { PostgresStore, type PostgresStoreOptions } from "waymark/stores/postgres";
import { testCheckpointStore } from "waymark/testing";
import { rejection } from "../../graphs.js";
import { newFolder } from "../folders.js";
import { newSchema } from "./server.js";
import { type Notes, start } from "./tables.js";
import { Workers } from "./worker.js";

const isTorture = process.env.MODE === "torture";
const KILLS = isTorture ? 20 : 1;
const workers = Workers.use();
const folder = mkdtempSync(join(tmpdir(), "waymark-pglite-"));
/** What PGlite has made, to be copied: to make it takes longer than all tests of a suite. */
const template = join(folder, ".waymark", "pg");
let embedded: PGlite;

beforeAll(async () => {
  await inFolder(async (store) => void (await store.list()));
  embedded = await PGlite.create(copyTo(join(folder, "pg")));
});

afterAll(async () => {
  await embedded.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Uses the store of the name "pglite" in the folder. */
async function inFolder(use: (store: CheckpointStore) => Promise<void>): Promise<void> {
  const before = process.cwd();
  const store = getCheckpointStore("pglite");
  process.chdir(folder);
  try {
    await use(store);
  } finally {
    await store.close?.();
    process.chdir(before);
  }
}

function copyTo(target: string): string {
  mkdirSync(dirname(target), { recursive: true });
  cpSync(template, target, { recursive: true });
  return target;
}

function suite(what: string, options: Omit<PostgresStoreOptions, "client" | "schema">): void {
  const schema = newSchema();
  const open = (): PostgresStore => new PostgresStore({ ...options, client: embedded, schema });
  let isMade = false;
  testCheckpointStore({
    name: `PostgresStore on PGlite, ${what}`,
    create: async () => {
      // The tables are made by the first test; to make them for each takes longer than the tests.
      if (isMade)
        await embedded.exec(`DELETE FROM "${schema}".checkpoints; DELETE FROM "${schema}".runs`);
      isMade = true;
      return open();
    },
    reopen: open,
    test,
  });
}

suite("as it is", {});
if (isTorture) {
  // The same statements with the same codec run on a server by default, in a tenth of the time.
  const encrypt = { keys: { k1: new Uint8Array(32) }, current: "k1" };
  suite("compressed and encrypted", { codec: { compress: "brotli", encrypt } });
}

test("a folder persists between stores and is opened only once", async () => {
  const parent = join(newFolder(), "deep");
  const client = `pglite:${copyTo(join(parent, "pg"))}`;
  const [one, two] = [new PostgresStore({ client }), new PostgresStore({ client })];
  await one.save(start());
  const error = await rejection(two.list(), ConfigError);
  expect(error.message).toMatch(/is open already: PGlite serves one process and one store/);
  await one.close();
  expect((await two.load<Notes>("run")).data.n).toBe(0);
  await two.close();
  expect(readdirSync(parent)).toEqual(["pg"]);
});

test("an open folder is recognized under each of its names", async () => {
  const parent = newFolder();
  const one = new PostgresStore({ client: `pglite:${copyTo(join(parent, "pg"))}` });
  symlinkSync(join(parent, "pg"), join(parent, "link"));
  const two = new PostgresStore({ client: `pglite:${join(parent, "link")}` });
  await one.save(start());
  const error = await rejection(two.list(), ConfigError);
  expect(error.message).toMatch(/is open already/);
  await one.close();
  expect(await two.list()).toEqual(["run"]);
  await two.close();
});

test("a path that is not a folder is named and not treated as open", async () => {
  const parent = newFolder();
  writeFileSync(join(parent, "pg"), "");
  const store = new PostgresStore({ client: `pglite:${join(parent, "pg")}` });
  for (const asked of [() => store.save(start()), () => store.list()]) {
    const error = await rejection(asked(), ConfigError);
    expect(error.message).toMatch(/must name a folder .*pg", which is a file$/);
  }
});

test("graphs can name the store pglite, whose folder is .waymark/pg", async () => {
  await inFolder(async () => {
    const graph = new StateGraph<Notes>({ checkpoint: { store: "pglite", interval: 1 } })
      .addNode("only", (state) => state.set("n", state.data.n + 1))
      .setEntryPoint("only")
      .setExitPoint("only");
    expect((await graph.execute(start("run"))).data.n).toBe(1);
    expect(existsSync(join(folder, ".waymark", "pg", "PG_VERSION"))).toBe(true);
  });
});

test("what PGlite acknowledged survives a killed process", async () => {
  const client = `pglite:${copyTo(join(newFolder(), "pg"))}`;
  for (let kill = 1; kill <= KILLS; kill++) {
    const worker = workers.start(client, `kill ${kill}`, 60_000);
    await worker.hear("ready");
    worker.order("work");
    await worker.hear("saved", ({ saved = 0 }) => saved >= 20 + kill);
    await worker.kill();
    const store = new PostgresStore({ client, schema: `kill ${kill}` });
    const found = await store.load<Notes>("run");
    expect(found.data.n).toBe(found.sequence);
    expect(found.sequence).toBeGreaterThanOrEqual(worker.acknowledged);
    await store.close();
  }
}, 300_000);
