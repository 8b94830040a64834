import { expect, test } from "vitest";
import { CheckpointConflictError, CheckpointSaveError, State } from "waymark";
import { JournalStore } from "waymark/stores/journal";
import { codeOf } from "../../src/stores/file/file-system.js";
import { CrashDisk, type Gate, systemError } from "../../src/testing/crash-file-system.js";

interface Count {
  readonly n: number;
}

const codes = ["ENOSPC", "EIO", "EACCES", "EMFILE"];

function open(disk: CrashDisk, gate: Gate = () => {}): JournalStore {
  return new JournalStore({ root: "/.waymark", keep: 2, snapshotEvery: 2 }, disk.mount(gate));
}

/** A disk with a run that was saved four times, twice before its log was compacted. */
async function saved(): Promise<CrashDisk> {
  const disk = new CrashDisk();
  const store = open(disk);
  let state = State.create<Count>({ n: 0 }, { runId: "run" });
  for (let n = 1; n <= 4; n++) {
    state = await store.save(state.set("n", n));
    if (n === 2) await store.compact();
  }
  await store.close();
  return disk.settled();
}

/** Lets every call through but one, which fails; says which calls there were. */
function failAt(index: number, code: string): { gate: Gate; calls: string[] } {
  const calls: string[] = [];
  const gate: Gate = (call, path) => {
    if (calls.push(`${call} ${path}`) === index + 1) throw systemError(code, path);
  };
  return { gate, calls };
}

/** Does something once for each call that it makes, each time with that call failing. */
async function failEach(
  action: (store: JournalStore) => Promise<unknown>,
  check: (outcome: unknown, disk: CrashDisk, what: string) => Promise<void>,
): Promise<number> {
  const before = await saved();
  const { gate, calls } = failAt(-1, "");
  const store = open(before.settled(), gate);
  await action(store);
  await store.close();
  for (const index of calls.keys()) {
    for (const code of codes) {
      const disk = before.settled();
      const failing = failAt(index, code);
      const tried = open(disk, failing.gate);
      const outcome = await action(tried).catch((error: unknown) => error);
      await tried.close();
      await check(outcome, disk, `${code} in ${failing.calls[index]}`);
    }
  }
  return calls.length;
}

async function goOn(store: JournalStore): Promise<State<Count>> {
  const state = await store.load<Count>("run");
  return store.save(state.set("n", 5));
}

test("a call that fails in a save is a clear error, and the checkpoint before it is as it was", async () => {
  const calls = await failEach(goOn, async (outcome, disk, what) => {
    const store = open(disk);
    const { n } = (await store.load<Count>("run")).data;
    if (outcome instanceof State) {
      expect(n, what).toBe(5);
    } else {
      expect([4, 5], what).toContain(n);
      const cause = outcome instanceof CheckpointSaveError ? outcome.cause : outcome;
      expect(what.startsWith(codeOf(cause)), `${what}: ${outcome}`).toBe(true);
    }
    expect((await goOn(store)).data.n, what).toBe(5);
    await store.close();
  });
  expect(calls).toBeGreaterThan(20);
});

test("a run that goes on after a failed save can save again", async () => {
  await failEach(
    async (store) => {
      const state = await store.load<Count>("run");
      const next = await store.save(state.set("n", 5)).catch(() => state);
      return store.save(next.set("n", 6));
    },
    async (outcome, disk, what) => {
      expect(outcome, what).not.toBeInstanceOf(CheckpointConflictError);
      const { n } = (await open(disk).load<Count>("run")).data;
      expect(outcome instanceof State ? [6] : [4, 5, 6], what).toContain(n);
    },
  );
});

test("a call that fails in a compaction or a deletion loses nothing", async () => {
  await failEach(
    (store) => store.compact(),
    async (_, disk, what) => {
      const store = open(disk);
      expect((await store.load<Count>("run")).data.n, what).toBe(4);
      expect((await store.history("run")).length, what).toBe(2);
      await store.compact();
      expect((await store.load<Count>("run")).data.n, what).toBe(4);
      await store.close();
    },
  );
  await failEach(
    (store) => store.delete("run"),
    async (outcome, disk, what) => {
      const store = open(disk);
      const left = await store.list();
      expect(left, what).toEqual(outcome === undefined ? [] : left);
      if (left.length > 0) expect((await store.load<Count>("run")).data.n, what).toBe(4);
      await store.delete("run");
      expect(await store.list(), what).toEqual([]);
    },
  );
});
