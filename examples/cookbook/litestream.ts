/**
 * Litestream for the SQLite file
 *
 * [Litestream](https://litestream.io) copies each transaction of a SQLite store to a bucket, a server or a folder
 * while runs are being saved. Here a machine is lost while a run waits for an answer; another one restores the
 * database and finishes the run. [SQLite](sqlite-and-redis.md#sqlite) says how the two work together, and what
 * can be lost.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { END, State, StateGraph } from "waymark";
import { SqliteStore } from "waymark/stores/sqlite";
import { z } from "zod";

// npm install @flydotio/litestream; if it is installed on the machine, just "litestream"
const binary = `@flydotio/litestream-${process.platform}-${process.arch}/litestream`;
const litestream = createRequire(import.meta.url).resolve(binary);

const folder = await mkdtemp(join(tmpdir(), "waymark-"));
const path = join(folder, "runs.db");
const replica = `file://${join(folder, "replica")}`; // in your program: s3://bucket/runs

const build = (store: SqliteStore) =>
  new StateGraph<{ text?: string; approved?: boolean }>({
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("draft", (_state, { runId }) => ({ text: `About ${runId}` }))
    .addNode("review", async (_state, { pause }) => {
      const question = { reason: "needs an approval", schema: z.boolean() };
      return { approved: await pause("approve", question) };
    })
    .addEdge("draft", "review")
    .addEdge("review", END)
    .setEntryPoint("draft");

const store = new SqliteStore({ path });
const start = (runId: string) => build(store).execute(State.create({}, { runId }));
console.log((await start("monday")).status); // paused

const replication = spawn(litestream, ["replicate", path, replica]);
for await (const line of createInterface(replication.stderr)) {
  if (line.includes("snapshot written")) break; // it has the database, and follows it from here on
}
console.log((await start("tuesday")).status); // paused
replication.kill("SIGINT"); // it copies what is left, and ends
await once(replication, "exit");
await store.close();
await rm(path); // the machine is lost

execFileSync(litestream, ["restore", "-o", path, replica], { stdio: "pipe" });
const restored = new SqliteStore({ path });
const graph = build(restored);
const runs = (await restored.list()).map((runId) => graph.resume(runId, { input: true }));
const texts = (await Promise.all(runs)).map(({ status, data }) => `${data.text} ${status}`);
console.log(texts.join(", ")); // About monday completed, About tuesday completed
await restored.close();
await rm(folder, { recursive: true });
