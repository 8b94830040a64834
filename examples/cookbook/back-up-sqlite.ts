/**
 * Back up a SQLite store
 *
 * Copy the database while runs are being saved. `VACUUM INTO` writes a complete, compact file that any tool can
 * then move elsewhere.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { END, State, StateGraph } from "waymark";
import { SqliteStore } from "waymark/stores/sqlite";

const folder = await mkdtemp(join(tmpdir(), "waymark-"));
const path = join(folder, "runs.db");
const copy = join(folder, "backup.db");

const store = new SqliteStore({ path });
const graph = new StateGraph<{ n: number }>({ checkpoint: { store, interval: 1, preserve: true } })
  .addNode("count", (state) => ({ n: state.data.n + 1 }))
  .addEdge("count", "count", (state) => state.data.n < 50)
  .addEdge("count", END)
  .setEntryPoint("count");

const run = graph.start(State.create({ n: 0 }, { runId: "monday" }));
await run.saved;
const database = new Database(path);
database.exec(`VACUUM INTO '${copy}'`); // the run as it is at this moment
database.close();
await run.result();
await store.close();

const restored = new SqliteStore({ path: copy, readOnly: true });
console.log((await restored.list()).join(), (await restored.load("monday")).runId); // monday monday
await restored.close();
await rm(folder, { recursive: true });
