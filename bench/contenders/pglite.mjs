import { createRequire } from "node:module";
import { newFolder } from "../lib/folder.mjs";
import { built, entry } from "../lib/waymark.mjs";
import { cycle } from "../workloads/cycle.mjs";
import { conversation, replaceOne } from "../workloads/messages.mjs";

// The one that waymark is developed with.
const { PGlite } = createRequire(new URL("../../package.json", import.meta.url))(
  "@electric-sql/pglite",
);
const { State } = await import(entry);
const { PostgresStore } = await built("stores/postgres.js");

// What measures has no more to ask.
process.on("disconnect", () => process.exit());

let client;
let store;

export async function prepare({ raw = false }) {
  // A new folder each time takes seconds; tables are emptied instead.
  client ??= new PGlite(newFolder());
  await client.query("CREATE TABLE IF NOT EXISTS raw (sequence bigint PRIMARY KEY, body jsonb)");
  await client.query("TRUNCATE raw");
  if (raw) return;
  await client.query("DROP SCHEMA IF EXISTS waymark CASCADE");
  store = new PostgresStore({ client, schema: "waymark" });
  // The tables are there: what is measured is a save, not the first of all.
  await store.save(State.create({ first: true }));
}

/**
 * A cycle of a waymark graph that a PostgresStore on PGlite keeps each step of, or only the INSERT of what changed.
 * @param {number} steps
 * @param {object} options
 * @param {number} options.kilobytes the size of a state
 * @param {boolean} [options.raw] only the INSERT
 */
export async function run(steps, { kilobytes, raw = false }) {
  if (raw) return insert(steps, kilobytes);
  const { data } = await cycle(store, steps).execute(State.create(conversation(kilobytes)));
  return data.n;
}

async function insert(steps, kilobytes) {
  let state = conversation(kilobytes);
  while (state.n < steps) {
    state = replaceOne(state);
    const { n, messages } = state;
    const body = JSON.stringify({ n, message: messages[n % messages.length] });
    await client.query("INSERT INTO raw (sequence, body) VALUES ($1, $2)", [n, body]);
  }
  return state.n;
}
