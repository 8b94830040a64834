import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunFilter } from "waymark";
import { State } from "waymark";
import { type PostgresPool, PostgresStore } from "waymark/stores/postgres";
import { newSchema, type Server, startServer } from "./server.js";

const RUNS = process.env.MODE === "torture" ? 1_000_000 : 100_000;
const LONG = 5_000;
/** Two of five statuses are finished. */
const FINISHED = (RUNS / 5) * 2;
const schema = newSchema();
const moment = (index: number): string => new Date(1.7e12 + index * 20).toISOString();

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Shared Hit Blocks"?: number;
  readonly "Shared Read Blocks"?: number;
  readonly Plans?: readonly Plan[];
}

let server: Server;
let pool: pg.Pool;
let store: PostgresStore;
const asked: { text: string; params: unknown[] }[] = [];

/** Notes what is asked of a pool. */
function recorder(inner: pg.Pool): PostgresPool {
  const note = (text: string, params: unknown[] = []): void => {
    if (!/^(BEGIN|COMMIT)$/.test(text)) asked.push({ text, params });
  };
  return {
    query: (text, params) => {
      note(text, params);
      return inner.query(text, params);
    },
    connect: async () => {
      const client = await inner.connect();
      return {
        query: (text, params) => {
          note(text, params);
          return client.query(text, params);
        },
        release: (error) => client.release(error),
      };
    },
  };
}

beforeAll(async () => {
  server = await startServer();
  pool = server.pool();
  store = new PostgresStore({ client: recorder(pool), schema, keep: Number.POSITIVE_INFINITY });
  await store.list();
  const statuses = "ARRAY['completed','failed','in_progress','paused','pending']";
  await pool.query(
    `INSERT INTO "${schema}".runs (run_id, sequence, checkpoint_id, graph, status, saved_at, metadata, header)
     SELECT 'run-' || i, 1, 'c', 'graph-' || i % 7, (${statuses})[1 + i % 5], saved_at,
       jsonb_build_object('tenant', i % 100),
       json_build_object('format', 1, 'runId', 'run-' || i, 'sequence', 1, 'checkpointId', 'c',
         'parentId', '', 'step', 1, 'node', 'node', 'status', (${statuses})[1 + i % 5],
         'timestamp', saved_at, 'savedAt', saved_at, 'startedAt', saved_at, 'reason', 'interval',
         'graph', 'graph-' || i % 7)
     FROM generate_series(0, ${RUNS - 1}) i, LATERAL (
       SELECT to_char(timestamp '2023-11-14 22:13:20' + i * interval '20 milliseconds',
         'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS saved_at) moment`,
  );
  await pool.query(
    `INSERT INTO "${schema}".checkpoints (run, sequence, base, bytes, checkpoint_id, sha256, header, content)
     SELECT r.id, 1, 1, 600, 'c', repeat('x', 64), r.header, repeat('x', 300) FROM "${schema}".runs r`,
  );
  await pool.query(
    `INSERT INTO "${schema}".checkpoints (run, sequence, base, bytes, checkpoint_id, sha256, header, content)
     SELECT r.id, i, 1 + i / 100 * 100, 600, 'c' || i, repeat('x', 64), r.header, repeat('x', 300)
     FROM "${schema}".runs r, generate_series(2, ${LONG}) i WHERE r.run_id = 'run-77'`,
  );
  await pool.query(`UPDATE "${schema}".runs SET sequence = ${LONG} WHERE run_id = 'run-77'`);
  await pool.query(`VACUUM ANALYZE "${schema}".runs`);
  await pool.query(`VACUUM ANALYZE "${schema}".checkpoints`);
});

afterAll(() => server.stop());

/** The plans of what an action asks the database. */
async function plansOf(action: () => Promise<unknown>, analyze = ""): Promise<Plan[]> {
  asked.length = 0;
  await action().catch(() => {});
  const plans: Plan[] = [];
  for (const { text, params } of asked.filter((one) => !/migrations|pg_class/.test(one.text))) {
    const { rows } = await pool.query(`EXPLAIN (${analyze} FORMAT JSON) ${text}`, params);
    plans.push(rows[0]["QUERY PLAN"][0].Plan);
  }
  expect(plans.length).toBeGreaterThan(0);
  return plans;
}

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

const tables = ["runs", "checkpoints"];

function scans(plans: readonly Plan[]): string[] {
  return plans
    .flatMap(nodesOf)
    .filter((node) => node["Node Type"] === "Seq Scan")
    .map((node) => node["Relation Name"] ?? "")
    .filter((name) => tables.includes(name));
}

const middle = { savedAt: moment(RUNS / 2), runId: "run-5" };

const filters: Readonly<Record<string, RunFilter>> = {
  "all runs": { limit: 20 },
  "a page in the middle": { limit: 20, cursor: middle },
  "those of one status": { limit: 20, status: "failed" },
  "those of several": { limit: 20, status: ["failed", "paused"], cursor: middle },
  "those of one graph": { limit: 20, graph: "graph-3" },
  "those of a graph and a status": { limit: 20, graph: "graph-3", status: "completed" },
  "those before a moment": { limit: 20, before: moment(1000) },
  "all of it": {
    limit: 20,
    graph: "graph-3",
    status: ["completed", "failed"],
    before: moment(RUNS * 0.75),
    cursor: middle,
  },
  "what is not there": { limit: 20, graph: "unknown" },
};

/** How many blocks of the tables and their indexes a list reads. */
async function blocksOf(filter: RunFilter): Promise<number> {
  const plans = await plansOf(() => store.runs(filter), "ANALYZE, BUFFERS,");
  expect(scans(plans)).toEqual([]);
  const names = plans.flatMap(nodesOf).map((node) => node["Node Type"]);
  expect(names.filter((name) => name.includes("Sort"))).toEqual([]);
  const [top] = plans;
  return (top?.["Shared Hit Blocks"] ?? 0) + (top?.["Shared Read Blocks"] ?? 0);
}

test.each(Object.entries(filters))(
  "listing %s reads a page by an index and sorts nothing",
  async (_, filter) => {
    expect(await blocksOf(filter)).toBeLessThan(100);
  },
);

test("a page costs the same at any offset", async () => {
  const late = { savedAt: moment(1000), runId: "run-1000" };
  const blocks: number[] = [];
  for (const cursor of [undefined, middle, late]) {
    expect(await store.runs({ limit: 50, cursor })).toHaveLength(50);
    blocks.push(await blocksOf({ limit: 50, cursor }));
  }
  expect(Math.max(...blocks)).toBeLessThan(2 * Math.min(...blocks));
});

test.each<[string, () => Promise<unknown>]>([
  ["the newest checkpoint", () => store.load("run-77")],
  ["one by its step", () => store.load("run-77", { step: 1234 })],
  ["one by its id", () => store.load("run-77", { checkpointId: "c1234" })],
  ["one by both", () => store.load("run-77", { step: 1234, checkpointId: "c1234" })],
  ["a history", () => store.history("run-1234")],
  ["what a run has", () => store.export("run-1").next()],
  ["the run of a checkpoint", () => store.find("c1234")],
  ["who has claimed a run", () => store.holder("run-77")],
  ["the runs with some metadata", () => store.runs({ metadata: { tenant: 7 } })],
])("reading %s scans no table", async (_, action) => {
  expect(scans(await plansOf(action))).toEqual([]);
});

test.each<[string, () => Promise<unknown>]>([
  ["by age", () => store.prune({ maxAgeDays: 36_500 })],
  ["by count, as a dry run", () => store.prune({ maxRuns: FINISHED - 10, dryRun: true })],
  ["by count", () => store.prune({ maxRuns: FINISHED - 10 })],
])("pruning %s scans no table", async (_, action) => {
  expect(scans(await plansOf(action))).toEqual([]);
});

test("saving, claiming and deleting scan no table", async () => {
  const plans = await plansOf(async () => {
    const claim = await store.claim("new");
    let state = await store.save(State.create({ n: 0 }, { runId: "new" }));
    for (let n = 1; n < 32; n++) state = await store.save(state.set("n", n), { keep: 2 });
    await claim?.release();
    await store.save(State.create({ n: 0 }, { runId: "new" })).catch(() => {});
    await Promise.all(
      ["a", "b", "c", "d", "e"].map(async (runId) => {
        const first = await store.save(State.create({ n: 0 }, { runId }));
        await store.save(first.set("n", 1));
      }),
    );
    await store.delete("new");
    await store.close();
  });
  expect(scans(plans)).toEqual([]);
});
