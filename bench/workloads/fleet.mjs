import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { built } from "../lib/waymark.mjs";
import { conversation } from "./messages.mjs";

const script = fileURLToPath(new URL("./fleet-process.mjs", import.meta.url));

/** How much of the work is over before the clock starts, and when it stops: all workers are busy in between. */
const FROM = 0.1;
const TO = 0.9;

let count = 0;

/**
 * Lets workers do runs that are in the queue before the first of them starts.
 * @param {{ url: string, cpuSeconds: () => number }} server
 * @param {object} options
 * @param {number} options.processes
 * @param {number} [options.workers] in each process
 * @param {number} [options.concurrency] of each worker
 * @param {number} options.runs
 * @param {number} options.nodes of each run, at least 2
 * @param {number} [options.ms] that a node waits
 * @returns {Promise<{ perSecond: number, database: number, workers: number }>} runs in a second; milliseconds of CPU for each run
 */
export async function workOff(server, options) {
  const { processes, workers = 1, concurrency = 10, runs, nodes, ms = 0 } = options;
  const place = await open(server.url);
  await place.submit(runs, nodes);
  const settings = { ...place.settings, workers, concurrency, ms, lease: 30_000 };
  const children = await Promise.all(Array.from({ length: processes }, () => start(settings)));
  const used = async () => (await Promise.all(children.map(cpuOf))).reduce((a, b) => a + b, 0);
  const at = async (part) => {
    await place.until(Math.ceil(runs * part));
    return {
      time: performance.now(),
      done: await place.done(),
      database: server.cpuSeconds(),
      workers: await used(),
    };
  };
  const from = await at(FROM);
  const to = await at(TO);
  await place.until(runs);
  for (const child of children) child.disconnect();
  await Promise.all(children.map(ended));
  await place.close();
  const done = to.done - from.done;
  return {
    perSecond: (done * 1000) / (to.time - from.time),
    database: ((to.database - from.database) * 1000) / done,
    workers: ((to.workers - from.workers) * 1000) / done,
  };
}

/**
 * What workers cost the database while they have no work, or hold runs that wait.
 * @param {{ url: string, cpuSeconds: () => number }} server
 * @param {{ workers: number, held: number, seconds: number }} options `held` is how many runs are under way meanwhile
 * @returns {Promise<number>} milliseconds of the database's CPU in a second
 */
export async function standBy(server, { workers, held, seconds }) {
  const place = await open(server.url);
  await place.submit(held, 2);
  const waits = 600_000;
  const settings = { ...place.settings, workers, concurrency: 10, ms: waits, lease: 30_000 };
  const child = await start(settings);
  await place.untilBegun(held);
  await sleep(1000);
  const before = server.cpuSeconds();
  const started = performance.now();
  await sleep(seconds * 1000);
  const used = server.cpuSeconds() - before;
  const passed = (performance.now() - started) / 1000;
  child.disconnect();
  await ended(child);
  await place.close();
  return (used * 1000) / passed;
}

/** A store and a queue of their own. */
async function open(url) {
  const { PostgresStore } = await built("stores/postgres.js");
  const { Client } = await built("worker/index.js");
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  const schema = `fleet_${process.pid}_${++count}`;
  const graph = "cycle";
  const store = new PostgresStore({ client: pool, schema });
  await store.list();
  const client = new Client({ connection: { url, schema: `${schema}_queue` }, store });
  const number = async (condition) => {
    const { rows } = await pool.query(
      `SELECT count(*) AS n FROM ${schema}.runs WHERE ${condition}`,
    );
    return Number(rows[0].n);
  };
  const until = async (condition, wanted) => {
    while ((await number(condition)) < wanted) await sleep(20);
  };
  return {
    settings: { url, schema, graph },
    submit: async (runs, nodes) => {
      const data = { ...conversation(1), nodes };
      for (let left = runs; left > 0; left -= 50) {
        const some = Array.from({ length: Math.min(left, 50) }, () => client.submit(graph, data));
        await Promise.all(some);
      }
    },
    done: () => number("status = 'completed'"),
    until: (wanted) => until("status = 'completed'", wanted),
    untilBegun: (wanted) => until("true", wanted),
    close: async () => {
      await client.close();
      await pool.query(`DROP SCHEMA ${schema} CASCADE`);
      await pool.query(`DROP SCHEMA ${schema}_queue CASCADE`);
      await pool.end();
    },
  };
}

function start(settings) {
  return new Promise((resolve, reject) => {
    const child = fork(script, [JSON.stringify(settings)]);
    child.once("exit", (code) => reject(new Error(`a worker ended with ${code}`)));
    child.once("message", () => resolve(child));
  });
}

function cpuOf(child) {
  return new Promise((resolve) => {
    child.once("message", resolve);
    child.send("cpu");
  });
}

function ended(child) {
  return new Promise((resolve) => child.once("exit", resolve));
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
