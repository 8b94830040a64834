import { afterAll, beforeAll, expect, test } from "vitest";
import type { State } from "waymark";
import { below, seeded, seedOfRun } from "../crash/random.js";
import type { Trail } from "./fixtures/graphs.js";
import { type Child, startWorld, until, type World } from "./world.js";

/** `npm run torture` does more. */
const RUNS = process.env.MODE === "torture" ? 500 : 120;
const LEASE = 1500;
const NODES = 4;

let world: World;
beforeAll(async () => {
  world = await startWorld();
}, 60_000);
afterAll(() => world.stop());

/** Kills a worker and measures how long it takes until others have all of its runs. */
async function killAndWatch(child: Child): Promise<number[]> {
  const { pool } = world;
  child.process.kill("SIGKILL");
  const killed = Date.now();
  await child.ended;
  const { rows } = await pool.query(
    `SELECT run_id, epoch FROM waymark.runs
     WHERE owner LIKE '%:' || $1 || ':%' AND lease_until IS NOT NULL`,
    [child.pid],
  );
  const left = new Map<string, string>(rows.map(({ run_id, epoch }) => [run_id, epoch]));
  const took: number[] = [];
  await until(
    "all runs of the dead worker are taken",
    async () => {
      const now = await pool.query(
        "SELECT run_id, epoch FROM waymark.runs WHERE run_id = ANY($1)",
        [[...left.keys()]],
      );
      for (const { run_id, epoch } of now.rows) {
        if (left.get(run_id) === epoch) continue;
        left.delete(run_id);
        took.push(Date.now() - killed);
      }
      return left.size === 0;
    },
    LEASE * 4,
  );
  return took;
}

test(`3 workers, ${RUNS} runs and random kills: no run is lost, no acknowledged node runs again`, {
  timeout: RUNS * 1000,
}, async () => {
  const seed = seedOfRun();
  const random = seeded(seed);
  console.log(`seed ${seed}`);
  const { client, pool } = world;
  const settings = { lease: LEASE, concurrency: 8, maxAttempts: 50 };
  let workers = await Promise.all([1, 2, 3].map(() => world.start(settings)));
  const runs = await Promise.all(
    Array.from({ length: RUNS }, (_, index) =>
      client.submit<Trail>(
        "steps",
        { ms: 20 + below(random, 100), trail: [] },
        { runId: `run ${index}` },
      ),
    ),
  );
  const results = Promise.all(runs.map((run) => run.result()));
  let isDone = false;
  const ended = results.finally(() => {
    isDone = true;
  });
  ended.catch(() => {});
  const watching: Promise<number[]>[] = [];
  while (!isDone) {
    await new Promise((resolve) => setTimeout(resolve, 200 + below(random, 600)));
    if (isDone) break;
    const index = below(random, workers.length);
    const victim = workers[index];
    if (victim === undefined) continue;
    watching.push(killAndWatch(victim));
    workers = [...workers.filter((one) => one !== victim), await world.start(settings)];
  }
  const states: State<Trail>[] = await results;
  const took = (await Promise.all(watching)).flat();
  const kills = watching.length;
  const slowest = Math.max(0, ...took);
  console.log(`${kills} kills, ${took.length} runs taken over, the slowest after ${slowest} ms`);

  expect(states.map(({ status }) => status)).toEqual(states.map(() => "completed"));
  const { rows } = await pool.query("SELECT run, step, exec, acked FROM effects");
  const made = new Map<string, number>();
  for (const { exec } of rows) made.set(exec, (made.get(exec) ?? 0) + 1);
  for (const { data } of states) {
    expect(data.trail).toHaveLength(NODES);
    for (const exec of data.trail) expect(made.get(exec)).toBe(1);
  }
  expect(rows.filter(({ step, acked }) => acked > step)).toEqual([]);
  expect(kills).toBeGreaterThan(1);
  expect(slowest).toBeLessThan(2 * LEASE);
  console.log(`${rows.length} executions for ${RUNS * NODES} nodes`);
});
