import pg from "pg";
import { built, entry } from "../lib/waymark.mjs";
import { conversation, replaceOne } from "./messages.mjs";

/**
 * What a service that has been up for a while would feel: how long a save takes while a thousand runs are under way,
 * how large a checkpoint is, and how long a resume takes.
 * @param {string} url the server
 * @returns {Promise<{ p95: number, kilobytes: number, resume: number }>} milliseconds, KB, milliseconds
 */
export async function postgresBounds(url) {
  const { State, StateGraph } = await import(entry);
  const { PostgresStore } = await built("stores/postgres.js");
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  const store = new PostgresStore({ client: pool, schema: "waymark_bounds" });
  const steps = 4;
  const took = [];
  const bytes = [];
  const checkpoint = { store, interval: 1, preserve: true };
  const graph = new StateGraph({ name: "bounds", checkpoint })
    // A task waits for something: a model, a page, a person.
    .addNode("tick", async (state) => {
      await wait(1000 + Math.random() * 2000);
      return replaceOne(state.data);
    })
    .addNode("done", (state) => state)
    .addEdge("tick", "tick", (state) => state.data.n < steps)
    .addEdge("tick", "done")
    .setEntryPoint("tick")
    .setExitPoint("done")
    .on("checkpoint.save", ({ data }) => {
      took.push(data.durationMs);
      bytes.push(data.bytes);
    });
  const begin = async () => {
    await wait(Math.random() * 2000);
    return graph.execute(State.create(conversation(10)));
  };
  // Its connections are open and its code is compiled.
  await Promise.all(Array.from({ length: 200 }, begin));
  took.length = 0;
  const [{ runId }] = await Promise.all(Array.from({ length: 1000 }, begin));
  const start = performance.now();
  await graph.resume(runId);
  const resume = performance.now() - start;
  await store.close();
  await pool.end();
  return { p95: quantile(took, 0.95), kilobytes: quantile(bytes, 0.95) / 1024, resume };
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function quantile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * part)];
}
