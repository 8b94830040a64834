import pg from "pg";
import { built, entry } from "../lib/waymark.mjs";
import { conversation, replaceOne } from "../workloads/messages.mjs";

const { State, StateGraph } = await import(entry);
const { PostgresStore } = await built("stores/postgres.js");
const { Client, Worker } = await built("worker/index.js");

// What measures has no more to ask.
process.on("disconnect", () => process.exit());

const schema = `worker_${process.pid}`;
let store;
let client;
let worker;

export async function prepare({ url, how }) {
  if (store !== undefined) return;
  store = new PostgresStore({ client: new pg.Pool({ connectionString: url, max: 4 }), schema });
  // The tables are there: what is measured is a save, not the first of all.
  await store.save(State.create({ first: true }));
  if (how !== "worker") return;
  const connection = { url, schema: `${schema}_queue` };
  client = new Client({ connection, store });
  worker = new Worker({ graphs: [cycle()], store, connection, concurrency: 1 });
  await worker.ready();
}

/**
 * One run, each node of which is saved: by bare saves, by a graph, or by a worker that takes it from the queue.
 * @param {number} steps how many nodes it has
 * @param {object} options
 * @param {string} options.url the server
 * @param {"save" | "execute" | "worker"} options.how
 */
export async function run(steps, { how }) {
  const data = { ...conversation(1), nodes: steps };
  if (how === "save") {
    let state = State.create(data);
    for (let n = 0; n < steps; n++) state = await store.save(state.merge(replaceOne(state.data)));
    return steps;
  }
  if (how === "execute") return (await cycle().execute(State.create(data))).step;
  const handle = await client.submit("cycle", data);
  return (await handle.result()).step;
}

function cycle() {
  const checkpoint = { store, interval: 1, preserve: true };
  return new StateGraph({ name: "cycle", maxIterations: 1_000_000, checkpoint })
    .addNode("tick", async (state) => replaceOne(state.data))
    .addNode("last", (state) => state)
    .addEdge("tick", "tick", (state) => state.data.n < state.data.nodes - 1)
    .addEdge("tick", "last")
    .setEntryPoint("tick")
    .setExitPoint("last");
}
