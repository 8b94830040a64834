import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { newFolder } from "./folder.mjs";
import { message } from "./messages.mjs";
import { entry } from "./waymark.mjs";

/** What 1,000 steps of a list that grows to 200 KB leave on the disk, in MB: as they are, and compacted. */
export async function journalDisk() {
  const { State } = await import(entry);
  const { JournalStore } = await import(new URL("../dist/stores/journal.js", import.meta.url));
  const root = newFolder();
  const store = new JournalStore({ root, durability: "os" });
  let state = State.create({ n: 0, messages: [] });
  for (let n = 1; n <= 1000; n++) {
    state = await store.save(state.merge({ n, messages: [...state.data.messages, message(n)] }));
  }
  const before = sizeOf(root);
  await store.compact();
  const after = sizeOf(root);
  await store.close();
  return { before, after, state: JSON.stringify(state.data).length / 1e6 };
}

function sizeOf(root) {
  return readdirSync(root, { recursive: true })
    .map((name) => statSync(join(root, name)))
    .reduce((sum, file) => sum + (file.isFile() ? file.size : 0) / 1e6, 0);
}
