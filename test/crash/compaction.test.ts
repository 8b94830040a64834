import { expect, test } from "vitest";
import { State } from "waymark";
import { CrashDisk, type Gate, withoutLinks } from "../../src/testing/crash-file-system.js";
import { seeded } from "./random.js";
import { openJournal, ROOT } from "./subjects.js";

interface Count {
  readonly n: number;
}

/** A disk with a run that was saved four times, and never compacted. */
async function savedFourTimes(): Promise<CrashDisk> {
  const disk = new CrashDisk();
  const store = openJournal(disk.mount(), { logBytes: 1e6 });
  let state = State.create<Count>({ n: 0 }, { runId: "run" });
  for (let n = 1; n <= 4; n++) state = await store.save(state.set("n", n));
  await store.close();
  return disk.settled();
}

/** Lets so many calls through; at the next the process dies, and its compaction never ends. */
async function dieAt(disk: CrashDisk, calls: number, links: Gate): Promise<boolean> {
  let made = 0;
  let die: (dead: boolean) => void = () => {};
  const died = new Promise<boolean>((resolve) => {
    die = resolve;
  });
  const store = openJournal(
    disk.mount(async (call, path) => {
      if (++made > calls) {
        die(true);
        await new Promise(() => {});
      }
      return links(call, path);
    }),
    { logBytes: 1e6 },
  );
  return Promise.race([died, store.compact().then(() => false)]);
}

test.each([
  ["", () => {}],
  [" (without links)", withoutLinks],
] as const)(
  "a compaction that is killed at any call is done by the next%s",
  async (_, links: Gate) => {
    for (let calls = 0; ; calls++) {
      const disk = await savedFourTimes();
      if (!(await dieAt(disk, calls, links))) break;
      const what = `killed at call ${calls}`;
      let made = 0;
      const store = openJournal(
        disk.mount((call, path) => {
          if (++made > 5000) throw new Error(`${what}: never ends`);
          return links(call, path);
        }),
        { logBytes: 1e6 },
      );
      let state = await store.load<Count>("run");
      expect(state.data.n, what).toBe(4);
      for (let n = 5; n <= 7; n++) {
        state = await store.save(state.set("n", n));
        await store.compact();
      }
      await store.close();
      const again = openJournal(disk.mount(links));
      expect((await again.load<Count>("run")).data.n, what).toBe(7);
      expect(
        (await again.history("run")).map(({ sequence }) => sequence),
        what,
      ).toEqual([7, 6]);
      await again.close();
      // What was begun is gone, and so is all that nobody needs.
      const paths = [...disk.contents().keys()];
      expect(
        paths.filter((path) => /\.tmp$|compacting$|quarantine/.test(path)),
        what,
      ).toEqual([]);
      expect(
        paths.filter((path) => /\/(log|anchors)_/.test(path)),
        what,
      ).toHaveLength(2);
    }
  },
);

test("what was on the disk for long outlives a compaction, also without syncs of saves", async () => {
  const disk = await savedFourTimes();
  const store = openJournal(disk.mount(), { durability: "os", logBytes: 1e6 });
  await store.compact();
  await store.close();
  expect([...disk.contents().keys()]).not.toContain(`${ROOT}/.log/log_0001.jsonl`);
  for (const crash of disk.crashes(seeded(1), 32)) {
    const again = openJournal(crash.disk.mount(), { logBytes: 1e6 });
    expect((await again.load<Count>("run")).data.n, `after change ${crash.at}`).toBe(4);
    await again.close();
  }
});
