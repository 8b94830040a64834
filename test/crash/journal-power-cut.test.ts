import { expect, test } from "vitest";
import { isWaymarkError, State } from "waymark";
import { JournalStore } from "waymark/stores/journal";
import type { FileSystem } from "../../src/stores/file/file-system.js";
import { CrashDisk } from "../../src/testing/crash-file-system.js";
import { seeded } from "./random.js";

interface Count {
  readonly n: number;
  readonly list: readonly string[];
}

const random = seeded(1);

function open(fileSystem: FileSystem, logBytes = 1500): JournalStore {
  return new JournalStore(
    { root: "/data/.waymark", keep: 2, snapshotEvery: 3, logBytes },
    fileSystem,
  );
}

/** A new disk, on which only the folder around the root is. */
async function newDisk(): Promise<CrashDisk> {
  const disk = new CrashDisk();
  await disk.mount().mkdir("/data");
  return disk.settled();
}

/** Saves the next State of a run and notes on the disk what is promised when. */
async function count(
  store: JournalStore,
  disk: CrashDisk,
  from: State<Count>,
): Promise<State<Count>> {
  const n = from.data.n + 1;
  disk.mark(`saving ${from.runId} ${n}`);
  const saved = await store.save(from.merge({ n, list: [...from.data.list, `item ${n}`] }));
  disk.mark(`saved ${from.runId} ${n}`);
  return saved;
}

const start = (runId: string): State<Count> => State.create<Count>({ n: 0, list: [] }, { runId });

async function countTo(store: JournalStore, disk: CrashDisk, end: number, runId = "run") {
  let state = start(runId);
  while (state.data.n < end) state = await count(store, disk, state);
  return state;
}

function highest(marks: readonly string[], word: string): number {
  const numbers = marks.flatMap((mark) =>
    mark.startsWith(`${word} `) ? [mark.slice(word.length)] : [],
  );
  return Math.max(0, ...numbers.map(Number));
}

async function load(store: JournalStore, runId: string, events: string[] = []) {
  try {
    return await store.load<Count>(runId, {}, { emit: (type) => events.push(type) });
  } catch (error) {
    if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return undefined;
    throw error;
  }
}

/** Looks at what is there after each power cut, and that the run goes on from it. */
async function check(disk: CrashDisk, runIds: readonly string[], most?: number): Promise<number> {
  let points = 0;
  for (const crash of disk.crashes(random, most)) {
    for (const runId of runIds) {
      const store = open(crash.disk.mount());
      const events: string[] = [];
      const state = await load(store, runId, events);
      const where = `crash after change ${crash.at}, run ${runId}`;
      const told = highest(crash.marks, `saved ${runId}`);
      const asked = highest(crash.marks, `saving ${runId}`);
      const found = state?.data.n ?? 0;
      expect([told, asked], where).toContain(found);
      expect(state?.data.list.length ?? 0, where).toBe(found);
      expect(events, where).toEqual([]);
      const next = await store.save((state ?? start(runId)).set("n", 99));
      expect(next.sequence, where).toBe(found + 1);
      await store.close();
      const again = open(crash.disk.mount());
      expect((await load(again, runId))?.data.n, where).toBe(99);
      await again.close();
    }
    points++;
  }
  return points;
}

test("saves, logs that are sealed and compacted: the last acknowledged State is there, or the one in flight", async () => {
  const disk = await newDisk();
  const store = open(disk.mount());
  await countTo(store, disk, 12);
  await store.close();
  expect([...disk.contents().keys()]).not.toContain("/data/.waymark/.log/log_0001.jsonl");
  expect(await check(disk, ["run"], 24)).toBeGreaterThan(200);
});

test("the same for several runs that share writes and flushes", async () => {
  const disk = await newDisk();
  const store = open(disk.mount());
  const runIds = ["a", "b", "c"];
  await Promise.all(runIds.map((runId) => countTo(store, disk, 5, runId)));
  await store.compact();
  await store.close();
  expect(await check(disk, runIds, 8)).toBeGreaterThan(100);
});

test("a second power cut while the run goes on after the first", async () => {
  const disk = await newDisk();
  const store = open(disk.mount());
  await countTo(store, disk, 5);
  await store.close();
  for (const crash of disk.crashes(random, 2)) {
    const again = open(crash.disk.mount());
    const found = (await load(again, "run")) ?? start("run");
    await count(again, crash.disk, found);
    await again.close();
    for (const second of crash.disk.crashes(random, 3)) {
      const state = await load(open(second.disk.mount()), "run");
      const told = Math.max(found.data.n, highest(second.marks, "saved run"));
      const asked = Math.max(found.data.n, highest(second.marks, "saving run"));
      expect([told, asked]).toContain(state?.data.n ?? 0);
    }
  }
});

test("a deletion: the run is there as it was, or gone, and never comes back", async () => {
  const before = await newDisk();
  const first = open(before.mount());
  const state = await countTo(first, before, 3);
  await first.compact();
  await count(first, before, state);
  await first.close();
  const disk = before.settled();
  const store = open(disk.mount());
  await store.delete("run");
  disk.mark("deleted");
  await countTo(store, disk, 1, "other");
  await store.compact();
  await store.close();
  for (const crash of disk.crashes(random, 32)) {
    const again = open(crash.disk.mount());
    const found = (await load(again, "run"))?.data.n;
    expect(crash.marks.includes("deleted") ? [undefined] : [undefined, 4]).toContain(found);
    expect((await again.list()).includes("run")).toBe(found !== undefined);
    await again.close();
  }
});

test("the copy of a corrupt record is there before the record goes", async () => {
  const before = await newDisk();
  const first = open(before.mount(), 1_000_000);
  await countTo(first, before, 4);
  await first.close();
  const path = "/data/.waymark/.log/log_0001.jsonl";
  before.tamper(path, (bytes) => flip(bytes, bytes.length - 20));
  const disk = before.settled();
  const events: string[] = [];
  const store = open(disk.mount());
  const state = await load(store, "run", events);
  expect([state?.data.n, state?.sequence, events]).toEqual([3, 4, ["checkpoint.quarantine"]]);
  disk.mark("quarantined");
  await store.compact();
  await store.close();
  for (const crash of disk.crashes(random, 16)) {
    const again = open(crash.disk.mount());
    expect((await load(again, "run"))?.data.n).toBe(3);
    const aside = [...crash.disk.contents().keys()].filter((path) => /quarantine\/./.test(path));
    if (crash.marks.includes("quarantined")) expect(aside).toHaveLength(1);
    await again.close();
  }
});

function flip(bytes: Uint8Array, at: number): Uint8Array {
  return bytes.map((byte, index) => (index === at ? byte ^ 1 : byte));
}
