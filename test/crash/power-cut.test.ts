import { describe, expect, test } from "vitest";
import { State } from "waymark";
import { CrashDisk } from "../../src/testing/crash-file-system.js";
import { nextStep } from "../stores/folders.js";
import { allowed, count, countTo, load, newDisk, start } from "./counting.js";
import { seeded } from "./random.js";
import { openFileStore, ROOT } from "./subjects.js";

const random = seeded(1);

/** Looks at what is there after each power cut, and that the runs continue from it. */
async function check(disk: CrashDisk, runIds: readonly string[], most?: number): Promise<number> {
  let points = 0;
  for (const crash of disk.crashes(random, most)) {
    for (const runId of runIds) {
      const store = openFileStore(crash.disk.mount());
      const events: string[] = [];
      const state = await load(store, runId, events);
      const where = `crash after change ${crash.at}, run ${runId}`;
      const found = state?.data.n ?? 0;
      expect(allowed(crash.marks, runId), where).toContain(found);
      expect(state?.data.list.length ?? 0, where).toBe(found);
      expect(events, where).toEqual([]);
      // It continues, the history is whole, and what the dead process left behind is swept.
      const next = await store.save(nextStep((state ?? start(runId)).set("n", 99)));
      expect(next.sequence, where).toBe(found + 1);
      await store.close();
      expect((await store.history(runId))[0]?.sequence, where).toBe(next.sequence);
      await store.close();
      const again = openFileStore(crash.disk.mount());
      expect((await load(again, runId))?.data.n, where).toBe(99);
      await again.close();
    }
    points++;
  }
  return points;
}

describe("after a power cut a FileStore has", () => {
  test("the last acknowledged State or the one in flight", async () => {
    const disk = await newDisk();
    const store = openFileStore(disk.mount());
    await countTo(store, disk, 5);
    await store.close();
    // So much was saved that the first files are gone.
    const paths = [...disk.contents().keys()];
    expect(paths).not.toContain(`${ROOT}/run/checkpoint_0001.json`);
    expect(await check(disk, ["run"], 128)).toBeGreaterThan(150);
  });

  test("the last acknowledged State of a run that resumed after another one", async () => {
    const disk = await newDisk();
    const store = openFileStore(disk.mount());
    await countTo(store, disk, 4);
    await store.close();
    for (const crash of disk.crashes(random, 4)) {
      const again = openFileStore(crash.disk.mount());
      const found = (await load(again)) ?? start();
      await count(again, crash.disk, found);
      await again.close();
      for (const second of crash.disk.crashes(random, 8)) {
        const state = await load(openFileStore(second.disk.mount()));
        expect(allowed(second.marks, "run", found.data.n)).toContain(state?.data.n ?? 0);
      }
    }
  });

  test("a deleted or pruned run as it was or not at all, never an older State of it", async () => {
    const before = await newDisk();
    const first = openFileStore(before.mount());
    await count(first, before, await countTo(first, before, 3, "finished"), "completed");
    await countTo(first, before, 2, "going");
    await countTo(first, before, 3, "deleted");
    await first.close();
    const disk = before.settled();
    const store = openFileStore(disk.mount());
    expect(await store.prune({ maxRuns: 0 })).toEqual(["finished"]);
    disk.mark("pruned");
    await store.delete("deleted");
    disk.mark("deleted");
    await store.close();
    for (const crash of disk.crashes(random, 64)) {
      const again = openFileStore(crash.disk.mount());
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

test("a quarantined file is never lost, and the next older State is used", async () => {
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

test("the simulated disk loses what was not synced", async () => {
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

describe("what is acknowledged survives a power cut", () => {
  const nothingUnsynced = () => 0;
  const first = State.create<{ n: number }>({ n: 1 }, { runId: "run" });

  test("in a folder whose creator died before it was durable", async () => {
    const disk = new CrashDisk();
    let isMade = false;
    const dying = disk.mount((call) => {
      if (isMade) return new Promise(() => {});
      isMade = call === "mkdir";
      return undefined;
    });
    void openFileStore(dying).save(first);
    await new Promise((resolve) => setImmediate(resolve));
    expect([...disk.contents().keys()]).toEqual(["/data/"]);
    await openFileStore(disk.mount()).save(first);
    const after = openFileStore(disk.afterPowerCut(nothingUnsynced).mount());
    expect((await after.load<{ n: number }>("run")).data.n).toBe(1);
  });

  test("if the rename was answered as if another process had made it", async () => {
    const disk = new CrashDisk();
    let links = 0;
    const doubled = disk.mount((call, path) => {
      if (call !== "link" || links++ > 0) return;
      const temporary = [...disk.contents().keys()].find((name) => name.endsWith(".tmp")) ?? "";
      disk.add(path, disk.find(temporary));
    });
    await openFileStore(doubled).save(first);
    expect(links).toBe(1);
    const after = openFileStore(disk.afterPowerCut(nothingUnsynced).mount());
    expect((await after.load<{ n: number }>("run")).data.n).toBe(1);
  });
});
