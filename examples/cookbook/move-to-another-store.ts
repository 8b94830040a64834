/**
 * Move runs to another store
 *
 * Start with files, then move to a database: each run keeps its history, ids and sequence, and continues there.
 * For a whole store, `npx waymark convert --from file:.waymark --to sqlite:runs.db` does the same.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { END, pause, State, StateGraph } from "waymark";
import { FileStore } from "waymark/stores/file";
import { SqliteStore } from "waymark/stores/sqlite";

const folder = await mkdtemp(join(tmpdir(), "waymark-"));
const files = new FileStore({ root: join(folder, "files") });
const database = new SqliteStore({ path: join(folder, "runs.db") });

const graphOn = (store: FileStore | SqliteStore) =>
  new StateGraph<{ ok: boolean }>({ checkpoint: { store, interval: 1, preserve: true } })
    .addNode("ask", (state) => pause(state, { reason: "an approval", into: "ok" }))
    .addEdge("ask", END)
    .setEntryPoint("ask");

await graphOn(files).execute(State.create({ ok: false }, { runId: "monday" }));

for (const runId of await files.list()) {
  await database.import(files.export(runId));
  await files.delete(runId);
}

const final = await graphOn(database).resume("monday", { input: true });
console.log(final.status, final.data.ok, (await files.list()).length); // completed true 0
await database.close();
await rm(folder, { recursive: true });
