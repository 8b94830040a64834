import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CheckpointStore, State } from "waymark";
import { JournalStore } from "waymark/stores/journal";

let root = "";

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "waymark-records-"));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

const open = () => new JournalStore({ root, logBytes: 2000, durability: "os", keep: 4 });

interface Notes {
  count: number;
  text: string;
}

/** Saves often enough that records are moved out of the log; gives the run's files of records. */
async function compacted(): Promise<string[]> {
  const store = open();
  let state = State.create<Notes>({ count: 0, text: "" }, { runId: "run" });
  for (let count = 1; count <= 40; count++) {
    state = await store.save(state.merge({ count, text: "x".repeat(200 + count) }));
  }
  await store.close();
  const folder = readdirSync(root, { recursive: true, encoding: "utf8" });
  return folder.filter((name) => /records_\d+\.jsonl$/.test(name)).map((name) => join(root, name));
}

async function newest(store: CheckpointStore): Promise<number> {
  const { data } = await store.load<Notes>("run");
  await store.close?.();
  return data.count;
}

describe("a run's records outside the log", () => {
  test("are found by the index in their first line", async () => {
    expect((await compacted()).length).toBeGreaterThan(0);
    expect(await newest(open())).toBe(40);
  });

  test.each([
    ["is damaged", (bytes: Buffer) => Buffer.concat([Buffer.from("#"), bytes.subarray(1)])],
    ["is gone", (bytes: Buffer) => bytes.subarray(bytes.indexOf("\n") + 1)],
    ["is no JSON", (bytes: Buffer) => Buffer.concat([Buffer.from("{\n"), bytes])],
    ["is empty", (bytes: Buffer) => Buffer.concat([Buffer.from("\n"), bytes])],
  ])("are read line by line where the index %s", async (_what, damage) => {
    for (const file of await compacted()) writeFileSync(file, damage(readFileSync(file)));
    expect(await newest(open())).toBe(40);
    const again = open();
    const loaded = await again.load<Notes>("run");
    expect((await again.save(loaded.set("count", 41))).sequence).toBe(loaded.sequence + 1);
    expect((await again.history("run")).length).toBeGreaterThan(1);
    await again.close();
  });
});
