import { readFileSync } from "node:fs";
import { microsPerStep } from "../lib/contender.mjs";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";
import { startPostgres } from "../servers/postgres.mjs";
import { standBy, workOff } from "../workloads/fleet.mjs";

// The worker takes the one that waymark is developed with.
const bullmq = new URL("../../node_modules/bullmq/package.json", import.meta.url);

export const name = "workers";
export const title = `Workers, on BullMQ ${JSON.parse(readFileSync(bullmq, "utf8")).version} and Postgres`;

export async function run() {
  if (!isBuilt) return [];
  const server = await startPostgres();
  try {
    const tables = [
      await perNode(server.url),
      await busy(server),
      await waiting(server),
      await many(server),
    ];
    // What a server elsewhere uses can't be seen from here.
    if (!Number.isNaN(server.cpuSeconds())) tables.push(...(await costs(server)));
    return tables;
  } finally {
    await server.stop();
  }
}

function perNode(url) {
  const steps = 500;
  const row = (how) => microsPerStep("worker", steps, { url, how });
  return compare({
    title: `one node of a run of ${steps}, a state of 1 KB, saved after each`,
    unit: "µs/node",
    rounds: 5,
    warmUp: 1,
    contenders: [
      { name: "the store's own save", role: "floor", ...row("save") },
      { name: "graph.execute, no worker", role: "reference", ...row("execute") },
      { name: "in a worker, with its way through the queue", role: "ours", ...row("worker") },
    ],
  });
}

/** Runs in a second by the number of workers, each in a process of its own. */
function fleets(server, counts, { title: said, rounds, runs, ...options }) {
  return compare({
    title: said,
    unit: "runs/s",
    rounds,
    warmUp: 0,
    contenders: counts.map((workers, index) => ({
      name: workers === 1 ? "1 worker" : `${workers} workers`,
      role: index === 0 ? "ours" : "reference",
      sample: async () => {
        const processes = Math.min(workers, 4);
        const fleet = { processes, workers: workers / processes, runs: runs(workers) };
        return (await workOff(server, { ...options, ...fleet })).perSecond;
      },
    })),
  });
}

function busy(server) {
  const said = "short runs: 4 nodes that do nothing; the processor is what they need";
  return fleets(server, [1, 2, 4], { title: said, rounds: 3, runs: () => 1000, nodes: 4 });
}

function waiting(server) {
  const said = "runs of 4 nodes that wait for 100 ms each, 10 at once in each worker";
  const options = { title: said, rounds: 3, runs: (workers) => 150 * workers, nodes: 4, ms: 100 };
  return fleets(server, [1, 2, 4], options);
}

function many(server) {
  const said =
    "the same, but of nodes that wait for 1 s each; of more than 4 workers, some share a process";
  const options = { title: said, rounds: 1, runs: (workers) => 40 * workers, nodes: 4, ms: 1000 };
  return fleets(server, [1, 4, 16, 64], options);
}

/** What runs and workers cost: milliseconds of CPU, of the database and of the workers. */
async function costs(server) {
  const rounds = 3;
  const samples = { two: [], twelve: [], idle: [], held: [] };
  for (let round = 0; round < rounds; round++) {
    samples.two.push(await workOff(server, { processes: 1, runs: 1000, nodes: 2 }));
    samples.twelve.push(await workOff(server, { processes: 1, runs: 1000, nodes: 12 }));
    samples.idle.push(await standBy(server, { workers: 16, held: 0, seconds: 12 }));
    samples.held.push(await standBy(server, { workers: 16, held: 160, seconds: 12 }));
  }
  const row = (said, values) => {
    const left = [...values];
    return { name: said, role: "ours", sample: () => left.shift() };
  };
  const table = (said, contenders) =>
    compare({ title: said, unit: "ms", rounds, warmUp: 0, contenders });
  return [
    await table("CPU of the database", [
      row(
        "a run of 2 nodes",
        samples.two.map(({ database }) => database),
      ),
      row(
        "a run of 12 nodes",
        samples.twelve.map(({ database }) => database),
      ),
      row(
        "a worker without work, each second",
        samples.idle.map((all) => all / 16),
      ),
      row(
        "a worker with 10 runs that wait, each second",
        samples.held.map((all) => all / 16),
      ),
    ]),
    await table("CPU of the worker", [
      row(
        "a run of 2 nodes",
        samples.two.map(({ workers }) => workers),
      ),
      row(
        "a run of 12 nodes",
        samples.twelve.map(({ workers }) => workers),
      ),
    ]),
  ];
}
