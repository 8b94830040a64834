import { expect, test } from "vitest";
import { CheckpointConflictError, State } from "waymark";
import { JournalStore } from "waymark/stores/journal";
import { CrashDisk, type Gate, systemError } from "../../src/testing/crash-file-system.js";
import type { Count } from "./folders.js";

const ROOT = "/w";
const options = { root: ROOT, keep: 3, snapshotEvery: 3 } as const;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function save(store: JournalStore, times: number, runId = "run"): Promise<State<Count>> {
  let state = State.create<Count>({ n: 0 }, { runId });
  for (let n = 1; n <= times; n++) state = await store.save(state.set("n", n));
  return state;
}

test("a State that is loaded while its run goes on does not pass for what came after it", async () => {
  let hold = false;
  let letGo = (): void => {};
  const gate: Gate = (call) => {
    if (!hold || call !== "read") return;
    hold = false;
    return new Promise<void>((resolve) => {
      letGo = resolve;
    });
  };
  const store = new JournalStore(options, new CrashDisk().mount(gate));
  const state = await save(store, 2);
  hold = true;
  const loading = store.load<Count>("run");
  while (hold) await turn();
  await store.save(state.set("n", 3));
  letGo();
  const loaded = await loading;
  expect([loaded.data.n, loaded.sequence]).toEqual([2, 2]);
  await expect(store.save(loaded.set("n", 30))).rejects.toThrow(CheckpointConflictError);
  expect((await store.load<Count>("run")).data.n).toBe(3);
  await store.close();
});

/** Does something, and closes the store at one of the calls that it makes; `false` when there are not so many. */
async function closedAt(
  at: number,
  action: (store: JournalStore) => Promise<void>,
): Promise<{ disk: CrashDisk; reached: boolean }> {
  const disk = new CrashDisk();
  let calls = Number.NEGATIVE_INFINITY;
  let closing: Promise<void> | undefined;
  const store = new JournalStore(
    options,
    disk.mount(async () => {
      if (calls++ !== at) return;
      closing = store.close();
      for (let turns = 0; turns < 20; turns++) await turn();
    }),
  );
  await save(store, 4);
  await save(store, 4, "other");
  calls = 0;
  await action(store);
  await closing;
  await store.close();
  return { disk, reached: calls > at };
}

test("a store that is closed at any call of a compaction loses nothing", async () => {
  for (let at = 0; ; at++) {
    const { disk, reached } = await closedAt(at, (store) => store.compact());
    if (!reached) break;
    const again = new JournalStore(options, disk.mount());
    expect((await again.list()).sort(), `closed at call ${at}`).toEqual(["other", "run"]);
    expect((await again.load<Count>("run")).data.n, `closed at call ${at}`).toBe(4);
    await again.compact();
    expect((await again.load<Count>("other")).data.n, `closed at call ${at}`).toBe(4);
    await again.close();
  }
});

test("a store that is closed at any call of a load, a list or a delete does it all the same", async () => {
  for (let at = 0; ; at++) {
    const { disk, reached } = await closedAt(at, async (store) => {
      expect((await store.load<Count>("run")).data.n, `closed at call ${at}`).toBe(4);
      expect((await store.list()).sort(), `closed at call ${at}`).toEqual(["other", "run"]);
      await store.delete("other");
    });
    if (!reached) break;
    const again = new JournalStore(options, disk.mount());
    expect(await again.list(), `closed at call ${at}`).toEqual(["run"]);
    await again.close();
  }
});

test("a call that fails while a log of several files is read closes each of them once", async () => {
  const disk = new CrashDisk();
  const full = new JournalStore(
    { ...options, logBytes: 1 },
    // Nothing is compacted, so that there are several.
    disk.mount((call, path) => {
      if (call === "create" && path.endsWith("compacting")) throw systemError("EACCES", path);
    }),
  );
  await save(full, 4);
  await full.close();
  for (const code of ["EMFILE", "ENOENT"]) {
    for (let at = 0; ; at++) {
      let calls = 0;
      let open = 0;
      let least = 0;
      const gate: Gate = (call, path) => {
        if (call !== "close" && calls++ === at) throw systemError(code, path);
        if (/^(open|create)/.test(call)) open++;
        if (call === "close") least = Math.min(least, --open);
      };
      const store = new JournalStore(options, disk.settled().mount(gate));
      await store.history("run").catch(() => {});
      const isOver = calls <= at;
      calls = Number.POSITIVE_INFINITY;
      expect((await store.load<Count>("run")).data.n, `${code} at call ${at}`).toBe(4);
      await store.close();
      expect([open, least], `${code} at call ${at}`).toEqual([0, 0]);
      if (isOver) break;
    }
  }
});
