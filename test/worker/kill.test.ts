import { afterAll, beforeAll, expect, test } from "vitest";
import type { State } from "waymark";
import { below, seeded, seedOfRun } from "../crash/random.js";
import type { Trail } from "./fixtures/graphs.js";
import { type Child, startWorld, until, type World } from "./world.js";

/** `npm run torture` does more. Of the runs that are in the queue at once, two workers have room for all. */
const [RUNS, AT_ONCE, KILLS, LEASE] =
  process.env.MODE === "torture" ? [500, 100, 60, 5000] : [80, 40, 8, 4000];
const NODES = 4;

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

/** When each worker was killed, by its process. */
const deaths = new Map<number, number>();

/** What the store and the queue say of runs: whose they were last, and which worker has taken their jobs. */
const WHERE = `
  SELECT r.run_id, r.epoch, split_part(j.processed_by, ':', 2)::int AS pid
  FROM waymark.runs r LEFT JOIN bullmq.job j ON j.id = r.run_id AND j.state = 'active'
  WHERE r.run_id = ANY($1)`;

/** Kills a worker and measures how long it takes until others have each of its runs. */
async function killAndWatch(child: Child): Promise<number[]> {
  const { pool } = world;
  child.process.kill("SIGKILL");
  deaths.set(child.pid, Date.now());
  await child.ended;
  const { rows } = await pool.query(
    `SELECT run_id, epoch FROM waymark.runs
     WHERE owner LIKE '%:' || $1 || ':%' AND lease_until IS NOT NULL`,
    [child.pid],
  );
  const left = new Map<string, string>(rows.map(({ run_id, epoch }) => [run_id, epoch]));
  // One that dies after it has taken a job, and before it has claimed the run, is the last to have had it.
  const had = new Map<string, number>(rows.map(({ run_id }) => [run_id, child.pid]));
  const took: number[] = [];
  await until(
    "all runs of the dead worker are taken",
    async () => {
      for (const { run_id, epoch, pid } of (await pool.query(WHERE, [[...left.keys()]])).rows) {
        if (left.get(run_id) === epoch) {
          if (deaths.has(pid)) had.set(run_id, pid);
          continue;
        }
        left.delete(run_id);
        took.push(Date.now() - (deaths.get(had.get(run_id) ?? 0) ?? 0));
      }
      return left.size === 0;
    },
    LEASE * 8,
  );
  return took;
}

test(`3 workers, ${RUNS} runs and random kills lose no run and repeat no acknowledged node`, {
  timeout: RUNS * 1000,
}, async () => {
  const seed = seedOfRun();
  const random = seeded(seed);
  console.log(`seed ${seed}`);
  const { client, pool } = world;
  const settings = { lease: LEASE, concurrency: AT_ONCE / 2, maxAttempts: 50 };
  const workers = new Set(await Promise.all([1, 2, 3].map(() => world.start(settings))));
  const left = Array.from({ length: RUNS }, (_, index) => `run ${index}`);
  const states: State<Trail>[] = [];
  const submitAll = async (): Promise<void> => {
    for (let runId = left.pop(); runId !== undefined; runId = left.pop()) {
      const data = { ms: 100 + below(random, 900), trail: [] };
      const run = await client.submit<Trail>("steps", data, { runId });
      states.push(await run.result());
    }
  };
  const results = Promise.all(Array.from({ length: AT_ONCE }, submitAll));
  let isDone = false;
  const ended = results.finally(() => {
    isDone = true;
  });
  ended.catch(() => {});
  const watching: Promise<number[]>[] = [];
  const starting = new Set<Promise<unknown>>();
  while (!isDone && watching.length < KILLS) {
    await new Promise((resolve) => setTimeout(resolve, 200 + below(random, 600)));
    const victim = [...workers][below(random, workers.size)];
    if (isDone || victim === undefined) break;
    if (workers.size < 3) continue;
    workers.delete(victim);
    watching.push(killAndWatch(victim));
    starting.add(world.start(settings).then((child) => workers.add(child)));
  }
  await results;
  const took = (await Promise.all(watching)).flat();
  await Promise.all(starting);
  const kills = watching.length;
  const slowest = Math.max(0, ...took);
  console.log(`${kills} kills, ${took.length} runs taken over, the slowest after ${slowest} ms`);

  expect(states.map(({ status }) => status)).toEqual(Array(RUNS).fill("completed"));
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
