import pg from "pg";
import { built, entry } from "../lib/waymark.mjs";
import { cycle } from "../workloads/cycle.mjs";
import { fillRuns } from "../workloads/cycle-in-store.mjs";
import { conversation } from "../workloads/messages.mjs";

const { State } = await import(entry);
const { PostgresStore } = await built("stores/postgres.js");

// What measures has no more to ask.
process.on("disconnect", () => process.exit());

const runId = "cycle";
const schema = `waymark_${process.pid}`;
let pool;
let store;
let filled;

export async function prepare({ url, what = "save", ...options }) {
  pool ??= new pg.Pool({ connectionString: url, max: 10 });
  if (what !== "save") {
    filled ??= await fill({ what, ...options });
    return;
  }
  await store?.close();
  await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  store = new PostgresStore({ client: pool, schema });
  // The tables are there: what is measured is a save, not the first of all.
  await store.save(State.create({ first: true }));
}

/**
 * A cycle of a waymark graph that a PostgresStore keeps each step of; or what reads such a run.
 * @param {number} steps of all runs together
 * @param {object} options
 * @param {string} options.url the server
 * @param {number} options.kilobytes the size of a state
 * @param {number} [options.runs] how many runs at once
 * @param {"save" | "load" | "history" | "runs"} [options.what]
 * @param {number} [options.keep] how many checkpoints the run that is read keeps
 * @param {number} [options.saved] how many steps it has, or how many runs there are
 */
export async function run(steps, { kilobytes, runs = 1, what = "save" }) {
  if (what === "save") {
    const graph = cycle(store, steps / runs);
    const all = Array.from({ length: runs }, () =>
      graph.execute(State.create(conversation(kilobytes))),
    );
    return (await Promise.all(all)).reduce((sum, { data }) => sum + data.n, 0);
  }
  const { graph, kept } = filled;
  for (let step = 0; step < steps; step++) {
    if (what === "load") graph.nextNode(await store.load(runId));
    else if (what === "runs") await store.runs({ limit: 50 });
    else if ((await store.history(runId)).length !== kept) throw new Error("history is short");
  }
  return steps;
}

/** A run of so many steps, or so many runs. */
async function fill({ kilobytes, saved, what, keep = 5 }) {
  store = new PostgresStore({ client: pool, schema, keep });
  if (what === "runs") {
    await fillRuns(store, saved, kilobytes);
    return {};
  }
  await cycle(store, saved, keep).execute(State.create(conversation(kilobytes), { runId }));
  const kept = (await store.history(runId)).length;
  return { graph: cycle(store, saved), kept };
}
