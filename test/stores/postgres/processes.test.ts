import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PostgresStore } from "waymark/stores/postgres";
import { newSchema, type Server, startServer } from "./server.js";
import { type Worker, Workers } from "./worker.js";

const PROCESSES = 10;
const TTL = 600;
const workers = Workers.use();
let server: Server;
let pool: pg.Pool;

beforeAll(async () => {
  server = await startServer();
  pool = server.pool();
});

afterAll(() => server.stop());

const begin = (schema: string): Worker => workers.start(server.url, schema, TTL);

test("of ten processes starting at once, one creates the tables", async () => {
  const schema = newSchema();
  const all = Array.from({ length: PROCESSES }, () => begin(schema));
  await Promise.all(all.map((worker) => worker.hear("ready")));
  for (const worker of all) worker.order("open");
  const answers = await Promise.all(all.map((worker) => worker.hear("runs")));
  expect(answers).toEqual(all.map(() => ({ runs: 0 })));
  const { rows } = await pool.query(`SELECT version FROM "${schema}".migrations`);
  expect(rows.map(({ version }) => Number(version))).toEqual([1]);
});

test("a process stopped beyond its lease can't write when it wakes up", async () => {
  const schema = newSchema();
  const zombie = begin(schema);
  await zombie.hear("ready");
  zombie.order("work");
  const { epoch = 0 } = await zombie.hear("epoch");
  await zombie.hear("saved", ({ saved = 0 }) => saved >= 5);
  zombie.signal("SIGSTOP");

  const store = new PostgresStore({ client: pool, schema });
  let claim = await store.claim("run");
  for (; claim === undefined; claim = await store.claim("run")) {
    // The database says when the lease has ended; there is nothing else to wait for.
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(claim.epoch).toBeGreaterThan(epoch);
  const taken = await store.load<{ n: number }>("run");
  const finished = await store.save(taken.set("n", -1));
  await claim.release();

  zombie.signal("SIGCONT");
  expect(await zombie.hear("code")).toEqual({ code: "CHECKPOINT_CONFLICT" });
  expect((await zombie.hear("lost")).lost).toMatch(/claim on the run is lost/);
  const newest = await store.load<{ n: number }>("run");
  expect([newest.sequence, newest.data.n]).toEqual([finished.sequence, -1]);
  // Nothing that it was told is saved is missing.
  expect(zombie.acknowledged).toBeLessThanOrEqual(taken.sequence);
  expect(taken.sequence - zombie.acknowledged).toBeLessThanOrEqual(1);
});
