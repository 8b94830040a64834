/** node fleet-process.mjs <options>: workers in one process; says when they are ready, and its CPU time when asked. */
import pg from "pg";
import { built, entry } from "../lib/waymark.mjs";
import { replaceOne } from "./messages.mjs";

const { StateGraph } = await import(entry);
const { PostgresStore } = await built("stores/postgres.js");
const { Worker } = await built("worker/index.js");

const { url, schema, graph, workers, concurrency, ms, lease } = JSON.parse(process.argv[2]);

/** A run of as many nodes as its data says, each of which waits for something. */
function cycle() {
  const tick = async (state) => {
    // As long on average: runs that began together must not end together.
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms * (0.5 + Math.random())));
    return replaceOne(state.data);
  };
  return new StateGraph({ name: graph, maxIterations: 1_000_000 })
    .addNode("tick", tick)
    .addNode("last", tick)
    .addEdge("tick", "tick", (state) => state.data.n < state.data.nodes - 1)
    .addEdge("tick", "last")
    .setEntryPoint("tick")
    .setExitPoint("last");
}

// Each has connections of its own, as it would on a machine of its own.
const all = Array.from({ length: workers }, () => {
  const client = new pg.Pool({ connectionString: url, max: 2 });
  const store = new PostgresStore({ client, schema });
  const connection = { url, schema: `${schema}_queue`, connections: 2 };
  return new Worker({ graphs: [cycle()], store, connection, concurrency, lease });
});
await Promise.all(all.map((worker) => worker.ready()));
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send((user + system) / 1_000_000);
});
process.on("disconnect", () => process.exit());
process.send("ready");
