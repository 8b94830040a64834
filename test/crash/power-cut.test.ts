import { expect, test } from "vitest";
import { isWaymarkError, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import type { FileSystem } from "../../src/stores/file/file-system.js";
import { CrashDisk } from "../../src/testing/crash-file-system.js";
import { seeded } from "./random.js";

interface Count {
  readonly n: number;
}

type Status = "in_progress" | "completed";

const random = seeded(1);

function open(fileSystem: FileSystem): FileStore {
  return new FileStore({ root: "/data/.waymark", keep: 2 }, fileSystem);
}

/** A new disk, on which only the folder around the root is. */
async function newDisk(): Promise<CrashDisk> {
  const disk = new CrashDisk();
  await disk.mount().mkdir("/data");
  return disk.settled();
}

/** Saves the next State of a run and notes on the disk what is promised when. */
async function count(
  store: FileStore,
  disk: CrashDisk,
  from: State<Count>,
  status: Status = "in_progress",
): Promise<State<Count>> {
  const n = from.data.n + 1;
  const next = State.fromJSON<Count>({ ...from.set("n", n).toJSON(), status });
  disk.mark(`saving ${n}`);
  const saved = await store.save(next);
  disk.mark(`saved ${n}`);
  return saved;
}

async function countTo(store: FileStore, disk: CrashDisk, end: number, runId = "run") {
  let state = State.create<Count>({ n: 0 }, { runId });
  while (state.data.n < end) state = await count(store, disk, state);
  return state;
}

function highest(marks: readonly string[], word: string): number {
  const numbers = marks.flatMap((mark) =>
    mark.startsWith(`${word} `) ? [mark.slice(word.length)] : [],
  );
  return Math.max(0, ...numbers.map(Number));
}

/** What a process finds that starts after the power is back. */
async function recover(fileSystem: FileSystem, runId = "run") {
  const events: string[] = [];
  const store = open(fileSystem);
  const state = await store
    .load<Count>(runId, {}, { emit: (type) => events.push(type) })
    .catch((error: unknown) => {
      if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return undefined;
      throw error;
    });
  return { store, state, events };
}

test("a save and a rotation: the last acknowledged State is there, or the one in flight", async () => {
  const disk = await newDisk();
  const store = open(disk.mount());
  await countTo(store, disk, 5);
  await store.close();
  let points = 0;
  for (const crash of disk.crashes(random)) {
    const { state, store: again, events } = await recover(crash.disk.mount());
    const [acknowledged, inFlight] = [
      highest(crash.marks, "saved"),
      highest(crash.marks, "saving"),
    ];
    const found = state?.data.n ?? 0;
    expect([acknowledged, inFlight], `crash after change ${crash.at}`).toContain(found);
    expect(events).toEqual([]);
    // It goes on, the history is whole, and what the dead process left behind is swept.
    const next = await again.save(
      (state ?? State.create<Count>({ n: 0 }, { runId: "run" })).set("n", 99),
    );
    expect((await again.load<Count>("run")).data.n).toBe(99);
    await again.close();
    const sequences = (await again.history("run")).map((entry) => entry.sequence);
    expect(sequences[0]).toBe(next.sequence);
    expect([...crash.disk.contents().keys()].filter((path) => path.endsWith(".tmp"))).toEqual([]);
    points++;
  }
  expect(points).toBeGreaterThan(150);
});

test("a second power cut while the run goes on after the first", async () => {
  const disk = await newDisk();
  const store = open(disk.mount());
  await countTo(store, disk, 4);
  await store.close();
  for (const crash of disk.crashes(random, 4)) {
    const found = await recover(crash.disk.mount());
    const before = found.state?.data.n ?? 0;
    const next = found.state ?? State.create<Count>({ n: 0 }, { runId: "run" });
    await count(found.store, crash.disk, next);
    await found.store.close();
    for (const second of crash.disk.crashes(random, 8)) {
      const { state } = await recover(second.disk.mount());
      const acknowledged = Math.max(before, highest(second.marks, "saved"));
      const inFlight = Math.max(before, highest(second.marks, "saving"));
      expect([acknowledged, inFlight]).toContain(state?.data.n ?? 0);
    }
  }
});

test("a quarantine: the next older State is there, and the corrupt file is never lost", async () => {
  const before = await newDisk();
  const first = open(before.mount());
  await countTo(first, before, 3);
  await first.close();
  const disk = before.settled();
  const corrupt = new TextEncoder().encode("not a checkpoint");
  disk.tamper("/data/.waymark/run/checkpoint_0003.json", () => corrupt);
  const store = open(disk.mount());
  const state = await store.load<Count>("run");
  expect(state.data.n).toBe(2);
  disk.mark("loaded");
  await count(store, disk, state.set("n", 40));
  await store.close();
  for (const crash of disk.crashes(random)) {
    const { state: found, store: again } = await recover(crash.disk.mount());
    // Before the first change the disk has not gone bad yet.
    const allowed = crash.at === 0 ? [3] : [2, highest(crash.marks, "saving")];
    if (highest(crash.marks, "saved") > 0) expect(found?.data.n).toBe(41);
    else expect(allowed).toContain(found?.data.n);
    if (crash.at > 0) {
      const contents = [...crash.disk.contents().values()].map((bytes) => Buffer.from(bytes));
      expect(contents.some((bytes) => bytes.equals(corrupt))).toBe(true);
    }
    if (found === undefined) throw new Error("lost");
    await again.save(found);
    await again.close();
  }
});

test("a prune and a delete: a run is as it was or gone, never set back", async () => {
  const before = await newDisk();
  const first = open(before.mount());
  await count(first, before, await countTo(first, before, 3, "finished"), "completed");
  await countTo(first, before, 2, "going");
  await countTo(first, before, 3, "deleted");
  await first.close();
  const disk = before.settled();
  const store = open(disk.mount());
  expect(await store.prune({ maxRuns: 0 })).toEqual(["finished"]);
  disk.mark("pruned");
  await store.delete("deleted");
  disk.mark("deleted");
  await store.close();
  for (const crash of disk.crashes(random)) {
    const fileSystem = crash.disk.mount();
    const numbers: Record<string, number | undefined> = {};
    for (const runId of ["finished", "going", "deleted"]) {
      numbers[runId] = (await recover(fileSystem, runId)).state?.data.n;
    }
    expect(numbers.going).toBe(2);
    expect([4, undefined]).toContain(numbers.finished);
    expect([3, undefined]).toContain(numbers.deleted);
    if (crash.marks.includes("pruned")) expect(numbers.finished).toBeUndefined();
    if (crash.marks.includes("deleted")) expect(numbers.deleted).toBeUndefined();
  }
});

test("the simulated disk does lose what was not synced", async () => {
  const disk = await newDisk();
  const store = new FileStore({ root: "/data/.waymark", durability: "os" }, disk.mount());
  await countTo(store, disk, 2);
  await store.close();
  const found = new Set<number | undefined>();
  for (const crash of disk.crashes(random)) {
    if (highest(crash.marks, "saved") < 2) continue;
    found.add((await recover(crash.disk.mount()).catch(() => undefined))?.state?.data.n);
  }
  expect(found.has(2) && found.has(undefined)).toBe(true);
});
