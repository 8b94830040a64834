import { type ChildProcess, fork } from "node:child_process";
import { on } from "node:events";
import { join } from "node:path";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { PostgresStore } from "waymark/stores/postgres";
import { bundle, removeBundle } from "../crash/bundle.js";
import { newSchema, type Server, startServer } from "./server.js";

interface Message {
  readonly ready?: boolean;
  readonly runs?: number;
  readonly epoch?: number;
  readonly saved?: number;
  readonly code?: string;
  readonly lost?: string;
}

const PROCESSES = 10;
const TTL = 600;
let server: Server;
let pool: pg.Pool;
let built: Awaited<ReturnType<typeof bundle>>;
const children: ChildProcess[] = [];

beforeAll(async () => {
  const external = ["pg", "@electric-sql/pglite"];
  [server, built] = await Promise.all([
    startServer(),
    bundle("worker", join(import.meta.dirname, "fixtures"), external),
  ]);
  pool = server.pool();
});

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

afterAll(async () => {
  removeBundle(built);
  await server.stop();
});

/** A process that works on a schema. */
class Worker {
  readonly #child: ChildProcess;
  /** All that it has told. */
  readonly told: Message[] = [];

  constructor(schema: string) {
    this.#child = fork(built.script, [server.url, schema, String(TTL)]);
    children.push(this.#child);
    this.#child.on("message", (message: Message) => this.told.push(message));
  }

  order(order: "open" | "work"): void {
    this.#child.send(order);
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#child.kill(signal);
  }

  /** Resolves when it has told something of a kind. */
  async hear<K extends keyof Message>(
    kind: K,
    fits = (_: Message): boolean => true,
  ): Promise<Message> {
    const isIt = (message: Message): boolean => kind in message && fits(message);
    const before = this.told.find(isIt);
    if (before !== undefined) return before;
    for await (const [message] of on(this.#child, "message")) if (isIt(message)) return message;
    throw new Error("it has ended");
  }
}

test("of ten processes that begin at once, one makes the tables", async () => {
  const schema = newSchema();
  const workers = Array.from({ length: PROCESSES }, () => new Worker(schema));
  await Promise.all(workers.map((worker) => worker.hear("ready")));
  for (const worker of workers) worker.order("open");
  const answers = await Promise.all(workers.map((worker) => worker.hear("runs")));
  expect(answers).toEqual(workers.map(() => ({ runs: 0 })));
  const { rows } = await pool.query(`SELECT version FROM "${schema}".migrations`);
  expect(rows.map(({ version }) => Number(version))).toEqual([1]);
});

test("a process that was stopped beyond its lease can write nothing when it wakes up", async () => {
  const schema = newSchema();
  const zombie = new Worker(schema);
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
  const acknowledged = zombie.told.flatMap(({ saved = [] }) => saved);
  expect(Math.max(...acknowledged)).toBeLessThanOrEqual(taken.sequence);
  expect(taken.sequence - Math.max(...acknowledged)).toBeLessThanOrEqual(1);
});
