import { describe, expect, test } from "vitest";
import { State } from "waymark";
import { JournalStore } from "waymark/stores/journal";
import { useFakeClock } from "waymark/testing";
import { CrashDisk, type Gate, systemError } from "../../src/testing/crash-file-system.js";
import { allowed, count, countTo, load, newDisk } from "./counting.js";
import { seeded } from "./random.js";
import { openFileStore, openJournal, ROOT, subjects } from "./subjects.js";

interface Text {
  readonly text: string;
}

const run = (runId: string, text = ""): State<Text> => State.create<Text>({ text }, { runId });

/** A gate that notes each call, and one that some calls don't get through until it is opened. */
function watched(isHeld: (call: string, path: string) => boolean = () => false) {
  const calls: string[] = [];
  let held = 0;
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const gate: Gate = async (call, path) => {
    calls.push(`${call} ${path}`);
    if (!isHeld(call, path)) return;
    held++;
    await opened;
  };
  return { gate, calls, open, held: () => held };
}

describe("one save", () => {
  test("of a file store is written, synced, named, and its name synced, in this order", async () => {
    const { gate, calls } = watched();
    const store = openFileStore(new CrashDisk().mount(gate));
    const first = await store.save(run("run"));
    calls.length = 0;
    await store.save(first.set("text", "x"));
    const steps = ["create", "write", "sync file", "link", "sync folder"];
    const order = steps.map((step) => calls.findIndex((call) => call.startsWith(step)));
    expect(order.every((at) => at >= 0)).toBe(true);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    await store.close();
  });

  test("of a journal is one write and one flush", async () => {
    const { gate, calls } = watched();
    const store = openJournal(new CrashDisk().mount(gate), { logBytes: 1e6 });
    const first = await store.save(run("run"));
    calls.length = 0;
    await store.save(first.set("text", "x"));
    expect(calls).toEqual(["write ", "sync file", "stat "]);
    await store.close();
  });
});

test("saves of many runs that wait for a flush share the next one", async () => {
  const { gate, calls } = watched();
  const store = openJournal(new CrashDisk().mount(gate), { logBytes: 1e9 });
  const runIds = Array.from({ length: 100 }, (_, index) => `run-${index}`);
  let states = await Promise.all(runIds.map((runId) => store.save(run(runId))));
  calls.length = 0;
  for (let step = 0; step < 10; step++) {
    states = await Promise.all(states.map((state) => store.save(state.set("text", `${step}`))));
  }
  const flushes = calls.filter((call) => call === "sync file").length;
  expect([flushes >= 10, flushes <= 20]).toEqual([true, true]);
  expect(calls.filter((call) => call === "write ")).toHaveLength(flushes);
  await store.close();
});

test("saves of one run that are asked for at once are made one after the other", async () => {
  for (const { open } of subjects) {
    let writing = 0;
    let most = 0;
    const gate: Gate = async (call) => {
      if (call !== "write") return;
      most = Math.max(most, ++writing);
      await new Promise((resolve) => setImmediate(resolve));
      writing--;
    };
    const store = open(new CrashDisk().mount(gate));
    const first = await store.save(run("run"));
    await Promise.allSettled([1, 2, 3].map((n) => store.save(first.set("text", `${n}`))));
    expect(most).toBe(1);
    await store.close();
  }
});

describe("what is done in the background holds up no run", () => {
  test("the removal of old runs", async () => {
    for (const { open } of subjects) {
      const disk = new CrashDisk();
      const first = open(disk.mount());
      const json = run("ancient").toJSON();
      await first.save(State.fromJSON({ ...json, status: "completed", timestamp: "2001-01-01" }));
      await first.close();
      const {
        gate,
        open: letGo,
        held,
      } = watched((_, path) => {
        return path.includes("ancient") || path.includes(".claims");
      });
      const store = open(disk.mount(gate));
      const pruning = store.prune({ maxAgeDays: 1 });
      let state = await store.save(run("new"));
      for (let n = 0; n < 5; n++) state = await store.save(state.set("text", `${n}`));
      expect(held()).toBeGreaterThan(0);
      letGo();
      expect(await pruning).toEqual(["ancient"]);
      await store.close();
    }
  });

  test("a compaction", async () => {
    const { gate, open: letGo, held } = watched((_, path) => path.includes("records_"));
    const store = openJournal(new CrashDisk().mount(gate));
    let state = run("run");
    for (let n = 0; n < 30; n++) state = await store.save(state.set("text", "x".repeat(n)));
    expect(held()).toBeGreaterThan(0);
    letGo();
    await store.close();
    expect((await store.load("run")).sequence).toBe(30);
    await store.close();
  });
});

describe("a journal that is flushed now and then", () => {
  const open = (disk: CrashDisk, gate?: Gate): JournalStore =>
    new JournalStore({ root: ROOT, durability: { flushEvery: 50 } }, disk.mount(gate));

  test("loses what is younger than that in a power cut, and nothing else", async () => {
    const clock = useFakeClock();
    try {
      const disk = await newDisk();
      const store = open(disk);
      const state = await countTo(store, disk, 3);
      await clock.advance(50);
      disk.mark("flushed");
      await count(store, disk, state);
      const found = new Set<number>();
      for (const crash of disk.crashes(seeded(1), 16)) {
        const n = (await load(open(crash.disk)))?.data.n ?? 0;
        if (crash.marks.includes("flushed")) found.add(n);
        expect(n).toBeLessThanOrEqual(allowed(crash.marks)[1] ?? 0);
      }
      expect([...found].sort()).toEqual([3, 4]);
      await store.close();
    } finally {
      clock.restore();
    }
  });

  test.each(["later", "by close itself"])("tells of a flush that failed, %s", async (when) => {
    const clock = useFakeClock();
    try {
      let broken = false;
      const disk = new CrashDisk();
      let open = 0;
      const gate: Gate = (call, path) => {
        if (/^(open|create)/.test(call)) open++;
        if (call === "close") open--;
        if (broken && call === "sync" && path === "file") throw systemError("EIO", path);
      };
      const store = new JournalStore(
        { root: ROOT, durability: { flushEvery: 50 } },
        disk.mount(gate),
      );
      const events: unknown[] = [];
      const emit = (type: string, data: object): unknown => events.push({ type, ...data });
      await store.save(run("run"), { emit });
      broken = true;
      if (when === "later") await clock.advance(50);
      await expect(store.close()).rejects.toMatchObject({ code: "EIO" });
      const error = expect.stringContaining("EIO");
      expect(events).toMatchObject([{ type: "checkpoint.error", action: "save", error }]);
      expect(open).toBe(0);
      // It was told; the store may be used again.
      broken = false;
      expect((await store.load("run")).sequence).toBe(1);
      await store.close();
    } finally {
      clock.restore();
    }
  });

  test("tells of a flush that failed with the next save, and goes on", async () => {
    const clock = useFakeClock();
    try {
      let broken = false;
      const store = open(new CrashDisk(), (call, path) => {
        if (broken && call === "sync" && path === "file") throw systemError("EIO", path);
      });
      const first = await store.save(run("run"));
      broken = true;
      await clock.advance(50);
      broken = false;
      const next = first.set("text", "x");
      await expect(store.save(next)).rejects.toMatchObject({ cause: { code: "EIO" } });
      expect((await store.save(next)).sequence).toBe(2);
      await store.close();
    } finally {
      clock.restore();
    }
  });
});

test("a file store does not keep the files of all runs open that were saved at once", async () => {
  let open = 0;
  const gate: Gate = (call) => {
    if (/^(open|create)/.test(call)) open++;
    if (call === "close") open--;
  };
  const store = openFileStore(new CrashDisk().mount(gate));
  const runs = Array.from({ length: 300 }, (_, id) => run(`run-${id}`));
  const saved = await Promise.all(runs.map((state) => store.save(state)));
  await new Promise((resolve) => setImmediate(resolve));
  // Two files of each of 64 runs.
  expect(open).toBe(128);
  for (const state of saved) await store.save(state.set("text", "x"));
  await new Promise((resolve) => setImmediate(resolve));
  expect(open).toBe(128);
  await store.close();
  expect(open).toBe(0);
});

test("a first save whose folder somebody else takes away meanwhile is made all the same", async () => {
  const disk = new CrashDisk();
  const other = openFileStore(disk.mount());
  let isFirst = true;
  const store = openFileStore(
    disk.mount(async (call, path) => {
      if (call !== "openFolder" || !path.endsWith("run") || !isFirst) return;
      isFirst = false;
      await other.delete("run");
    }),
  );
  const saved = await store.save(run("run", "x"));
  expect(isFirst).toBe(false);
  expect((await other.load<Text>("run")).toJSON()).toEqual(saved.toJSON());
  for (const one of [store, other]) await one.close();
});
