import { Redis } from "ioredis";
import { built, entry } from "../lib/waymark.mjs";
import { cycle } from "../workloads/cycle.mjs";
import { conversation } from "../workloads/messages.mjs";

const { State } = await import(entry);
const { RedisStore } = await built("stores/redis.js");

// What measures has no more to ask.
process.on("disconnect", () => process.exit());

let client;
let store;

export async function prepare({ socket }) {
  client ??= new Redis(socket);
  await store?.close();
  await client.flushall();
  store = new RedisStore({ client });
  // The scripts are there: what is measured is a save, not the first of all.
  await store.save(State.create({ first: true }));
}

/**
 * A cycle of a waymark graph that a RedisStore keeps each step of.
 * @param {number} steps of all runs together
 * @param {{ socket: string, kilobytes: number, runs?: number }} options
 */
export async function run(steps, { kilobytes, runs = 1 }) {
  const graph = cycle(store, steps / runs);
  const all = Array.from({ length: runs }, () =>
    graph.execute(State.create(conversation(kilobytes))),
  );
  return (await Promise.all(all)).reduce((sum, { data }) => sum + data.n, 0);
}
