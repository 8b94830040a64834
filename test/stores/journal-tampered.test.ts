import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { JournalStore } from "waymark/stores/journal";
import { type Count, listen, newFolder, saveTimes } from "./folders.js";
import { withOther } from "./tampered.js";

const codec = { encrypt: { current: "k1", keys: { k1: Buffer.alloc(32, 7) } } };

function open(root: string): JournalStore {
  return new JournalStore({ root, codec, durability: "os", snapshotEvery: 3, keep: 10 });
}

/** A run of six encrypted records of which one was changed by somebody who then made its hash anew. */
async function tampered(bad: number): Promise<string> {
  const root = newFolder();
  await saveTimes(open(root), 6);
  const path = join(root, ".log/log_0001.jsonl");
  const lines = readFileSync(path, "utf8").split("\n").filter(Boolean);
  const changed = lines.map((line, index) =>
    index === bad - 1 ? withOther(`${line}\n`) : `${line}\n`,
  );
  writeFileSync(path, `\n${changed.join("")}`);
  return root;
}

describe("an encrypted record that was tampered with, under a hash that fits", () => {
  // 1 and 4 are whole, the others patches to the one before.
  test.each([
    [1, 6],
    [4, 3],
    [5, 4],
    [6, 5],
  ])(
    "the %ith of six: the newest that does not need it is used, and it is told",
    async (bad, n) => {
      const root = await tampered(bad);
      const store = open(root);
      const { context, events } = listen();
      const newest = await store.load<Count>("run", {}, context);
      expect(newest.data.n).toBe(n);
      const files = events.map(({ data }) => Reflect.get(data, "file"));
      const record = expect.stringContaining(`record_000${bad}.`);
      expect(files).toEqual(n === 6 ? [] : [record]);
      // It goes on after all that was ever there, and what was saved is found again.
      expect((await store.save(newest.set("n", 7))).sequence).toBe(7);
      await store.compact();
      await store.close();
      expect((await open(root).load<Count>("run")).data.n).toBe(7);
    },
  );

  test("in a file of records: the same", async () => {
    const root = await tampered(6);
    const store = open(root);
    await store.compact();
    expect((await store.load<Count>("run")).data.n).toBe(5);
    await store.close();
    expect((await open(root).load<Count>("run")).data.n).toBe(5);
  });
});
