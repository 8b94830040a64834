import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { newFolder } from "../lib/folder.mjs";
import { entry } from "../lib/waymark.mjs";
import { langgraphCycle } from "./langgraph-cycle.mjs";
import { message } from "./messages.mjs";
import { SqliteStore } from "./sqlite-store.mjs";

/**
 * What so many steps of a list that grows leave on the disk, in MB: while the store is open, and once it is closed.
 * @param {number} steps 1,000 make a list of 200 KB
 */
export async function sqliteDisk(steps) {
  const { State } = await import(entry);
  const root = newFolder();
  const store = new SqliteStore({ path: join(root, "waymark.db"), durability: "os" });
  let state = State.create({ n: 0, messages: [] });
  for (let n = 1; n <= steps; n++) {
    const next = state.merge({ n, messages: [...state.data.messages, message(n)] });
    state = await store.save(next.setCheckpointNode("grow"));
  }
  const opened = sizeOf(root);
  await store.close();
  return { opened, closed: sizeOf(root), state: JSON.stringify(state.data).length / 1e6 };
}

/** The same of LangGraph.js and its SQLite saver, in MB. */
export async function langgraphDisk(steps) {
  const root = newFolder();
  const saver = SqliteSaver.fromConnString(join(root, "checkpoints.sqlite"));
  await langgraphCycle(saver, steps, { kilobytes: 0, kind: "growing" });
  saver.db.pragma("wal_checkpoint(TRUNCATE)");
  saver.db.close();
  return sizeOf(root);
}

function sizeOf(root) {
  return readdirSync(root, { recursive: true })
    .map((name) => statSync(join(root, name)))
    .reduce((sum, file) => sum + (file.isFile() ? file.size : 0) / 1e6, 0);
}
