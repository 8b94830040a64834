import { describe, expect, test } from "vitest";
import type { CrashDisk } from "../../src/testing/crash-file-system.js";
import { allowed, count, countTo, load, newDisk, start } from "./counting.js";
import { seeded } from "./random.js";
import { openFileStore, openJournal, ROOT, type Subject, subjects } from "./subjects.js";

const random = seeded(1);

/** Looks at what is there after each power cut, and that the runs go on from it. */
async function check(
  { open }: Pick<Subject, "open">,
  disk: CrashDisk,
  runIds: readonly string[],
  most?: number,
): Promise<number> {
  let points = 0;
  for (const crash of disk.crashes(random, most)) {
    for (const runId of runIds) {
      const store = open(crash.disk.mount());
      const events: string[] = [];
      const state = await load(store, runId, events);
      const where = `crash after change ${crash.at}, run ${runId}`;
      const found = state?.data.n ?? 0;
      expect(allowed(crash.marks, runId), where).toContain(found);
      expect(state?.data.list.length ?? 0, where).toBe(found);
      expect(events, where).toEqual([]);
      // It goes on, the history is whole, and what the dead process left behind is swept.
      const next = await store.save((state ?? start(runId)).set("n", 99));
      expect(next.sequence, where).toBe(found + 1);
      await store.close();
      expect((await store.history(runId))[0]?.sequence, where).toBe(next.sequence);
      await store.close();
      const again = open(crash.disk.mount());
      expect((await load(again, runId))?.data.n, where).toBe(99);
      await again.close();
    }
    points++;
  }
  return points;
}

describe.each(subjects)("after a power cut a $name has", (subject) => {
  test("the last acknowledged State, or the one in flight", async () => {
    const disk = await newDisk();
    const store = subject.open(disk.mount());
    const isFiles = subject.name === "FileStore";
    await countTo(store, disk, isFiles ? 5 : 12);
    await store.close();
    // So much was saved that the first files are gone: rotated away, or compacted.
    const paths = [...disk.contents().keys()];
    const gone = isFiles ? "run/checkpoint_0001.json" : ".log/log_0001.jsonl";
    expect(paths).not.toContain(`${ROOT}/${gone}`);
    expect(await check(subject, disk, ["run"], isFiles ? 128 : 24)).toBeGreaterThan(150);
  });

  test("the same when the run had gone on after another one", async () => {
    const disk = await newDisk();
    const store = subject.open(disk.mount());
    await countTo(store, disk, 4);
    await store.close();
    const most = subject.name === "FileStore" ? 4 : 2;
    for (const crash of disk.crashes(random, most)) {
      const again = subject.open(crash.disk.mount());
      const found = (await load(again)) ?? start();
      await count(again, crash.disk, found);
      await again.close();
      for (const second of crash.disk.crashes(random, 2 * most)) {
        const state = await load(subject.open(second.disk.mount()));
        expect(allowed(second.marks, "run", found.data.n)).toContain(state?.data.n ?? 0);
      }
    }
  });

  test("a deleted or pruned run as it was or not at all, never set back", async () => {
    const before = await newDisk();
    const first = subject.open(before.mount());
    await count(first, before, await countTo(first, before, 3, "finished"), "completed");
    await countTo(first, before, 2, "going");
    await countTo(first, before, 3, "deleted");
    await first.close();
    const disk = before.settled();
    const store = subject.open(disk.mount());
    expect(await store.prune({ maxRuns: 0 })).toEqual(["finished"]);
    disk.mark("pruned");
    await store.delete("deleted");
    disk.mark("deleted");
    // The end of a run must not come back with what is compacted.
    if ("compact" in store) await store.compact();
    await store.close();
    for (const crash of disk.crashes(random, subject.name === "FileStore" ? 64 : 8)) {
      const again = subject.open(crash.disk.mount());
      const numbers: Record<string, number | undefined> = {};
      for (const runId of ["finished", "going", "deleted"]) {
        numbers[runId] = (await load(again, runId))?.data.n;
        expect((await again.list()).includes(runId)).toBe(numbers[runId] !== undefined);
      }
      await again.close();
      const { finished, going, deleted } = numbers;
      expect(going).toBe(2);
      expect(crash.marks.includes("pruned") ? [undefined] : [4, undefined]).toContain(finished);
      expect(crash.marks.includes("deleted") ? [undefined] : [3, undefined]).toContain(deleted);
    }
  });
});

test("a journal has the same of several runs that share writes and flushes", async () => {
  const disk = await newDisk();
  const store = openJournal(disk.mount());
  const runIds = ["a", "b", "c"];
  await Promise.all(runIds.map((runId) => countTo(store, disk, 5, runId)));
  await store.compact();
  await store.close();
  expect(await check({ open: openJournal }, disk, runIds, 8)).toBeGreaterThan(100);
});

test("a quarantined file is never lost, and the next older State is there", async () => {
  const before = await newDisk();
  const first = openFileStore(before.mount());
  await countTo(first, before, 3);
  await first.close();
  const disk = before.settled();
  const corrupt = new TextEncoder().encode("not a checkpoint");
  disk.tamper(`${ROOT}/run/checkpoint_0003.json`, () => corrupt);
  const store = openFileStore(disk.mount());
  const state = await store.load<{ n: number; list: string[] }>("run");
  expect(state.data.n).toBe(2);
  await count(store, disk, state.set("n", 40));
  await store.close();
  for (const crash of disk.crashes(random)) {
    const again = openFileStore(crash.disk.mount());
    const found = await load(again);
    const [told = 0, asked = 0] = allowed(crash.marks);
    // Before the first change the disk has not gone bad yet.
    const fits = crash.at === 0 ? [3] : told > 0 ? [told] : [2, asked];
    expect(fits).toContain(found?.data.n);
    if (crash.at > 0) {
      const contents = [...crash.disk.contents().values()].map((bytes) => Buffer.from(bytes));
      expect(contents.some((bytes) => bytes.equals(corrupt))).toBe(true);
    }
    if (found === undefined) throw new Error("lost");
    await again.save(found);
    await again.close();
  }
});

test("the copy of a corrupt record of a journal is there before the record goes", async () => {
  const before = await newDisk();
  const first = openJournal(before.mount(), { logBytes: 1e6 });
  await countTo(first, before, 4);
  await first.close();
  before.tamper(`${ROOT}/.log/log_0001.jsonl`, (bytes) =>
    bytes.map((byte, index) => (index === bytes.length - 20 ? byte ^ 1 : byte)),
  );
  const disk = before.settled();
  const events: string[] = [];
  const store = openJournal(disk.mount());
  const state = await load(store, "run", events);
  expect([state?.data.n, state?.sequence, events]).toEqual([3, 4, ["checkpoint.quarantine"]]);
  disk.mark("quarantined");
  await store.compact();
  await store.close();
  for (const crash of disk.crashes(random, 16)) {
    const again = openJournal(crash.disk.mount());
    expect((await load(again))?.data.n).toBe(3);
    const aside = [...crash.disk.contents().keys()].filter((path) => /quarantine\/./.test(path));
    if (crash.marks.includes("quarantined")) expect(aside).toHaveLength(1);
    await again.close();
  }
});

test("the simulated disk does lose what was not synced", async () => {
  const disk = await newDisk();
  const store = openFileStore(disk.mount(), { durability: "os" });
  await countTo(store, disk, 2);
  await store.close();
  const found = new Set<number | undefined>();
  for (const crash of disk.crashes(random)) {
    if ((allowed(crash.marks)[0] ?? 0) < 2) continue;
    found.add((await load(openFileStore(crash.disk.mount())).catch(() => undefined))?.data.n);
  }
  expect(found.has(2) && found.has(undefined)).toBe(true);
});
