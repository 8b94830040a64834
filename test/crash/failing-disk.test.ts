import { expect, test } from "vitest";
import { CheckpointConflictError, CheckpointSaveError, isWaymarkError, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { codeOf } from "../../src/stores/file/file-system.js";
import {
  CrashDisk,
  type Gate,
  systemError,
  withoutLinks,
} from "../../src/testing/crash-file-system.js";

interface Count {
  readonly n: number;
}

const codes = ["ENOSPC", "EIO", "EACCES", "EMFILE"];

function open(disk: CrashDisk, gate: Gate = () => {}): FileStore {
  return new FileStore({ root: "/.waymark", keep: 2 }, disk.mount(gate));
}

/** What a test does on a disk where a file can have two names, and on one where it can't. */
const disks: readonly (readonly [string, Gate])[] = [
  ["", () => {}],
  [" (without links)", withoutLinks],
];

/** A disk with a run that was saved three times. */
async function savedThrice(): Promise<CrashDisk> {
  const disk = new CrashDisk();
  const store = open(disk);
  let state = State.create<Count>({ n: 0 }, { runId: "run" });
  for (let n = 1; n <= 3; n++) state = await store.save(state.set("n", n));
  await store.close();
  return disk.settled();
}

/** Lets every call through but one, which fails; says which calls there were. */
function failAt(
  index: number,
  code: string,
  disk: Gate = () => {},
): { gate: Gate; calls: string[] } {
  const calls: string[] = [];
  const gate: Gate = (call, path) => {
    if (calls.push(`${call} ${path}`) === index + 1) throw systemError(code, path);
    return disk(call, path);
  };
  return { gate, calls };
}

/** Does something once for each call that it makes, each time with that call failing. */
async function failEach(
  action: (store: FileStore) => Promise<unknown>,
  check: (outcome: unknown, disk: CrashDisk, what: string, isLinked: boolean) => Promise<void>,
  diskGate?: Gate,
): Promise<number> {
  const before = await savedThrice();
  const { gate, calls } = failAt(-1, "", diskGate);
  const store = open(before.settled(), gate);
  await action(store);
  await store.close();
  for (const index of calls.keys()) {
    for (const code of codes) {
      const disk = before.settled();
      const failing = failAt(index, code, diskGate);
      const tried = open(disk, failing.gate);
      const outcome = await action(tried).catch((error: unknown) => error);
      await tried.close();
      const isLinked = failing.calls.slice(0, index).some((call) => /^(link|rename)/.test(call));
      await check(outcome, disk, `${code} in ${failing.calls[index]}`, isLinked);
    }
  }
  return calls.length;
}

const goOn = async (store: FileStore): Promise<State<Count>> => {
  const state = await store.load<Count>("run");
  return store.save(state.set("n", 4));
};

test.each(disks)(
  "a call that fails in a save is a clear error, and the checkpoint before it is as it was%s",
  async (_, diskGate) => {
    const calls = await failEach(
      goOn,
      async (outcome, disk, what, isLinked) => {
        const store = open(disk);
        const { n } = (await store.load<Count>("run")).data;
        if (outcome instanceof State) {
          expect(n, what).toBe(4);
        } else {
          // Past the link it is there and whole, only not sure to last: the one in flight.
          expect(isLinked ? [3, 4] : [3], what).toContain(n);
          expect(outcome, what).toBeInstanceOf(Error);
          // A load gives the file system's own error, a save wraps it.
          const cause = outcome instanceof CheckpointSaveError ? outcome.cause : outcome;
          expect(what.startsWith(codeOf(cause)), what).toBe(true);
        }
        // The fault is gone, and all goes on, also the run that was told to ignore it.
        expect((await goOn(store)).data.n, what).toBe(4);
        await store.close();
      },
      diskGate,
    );
    expect(calls).toBeGreaterThan(20);
  },
);

test("a run that goes on after a failed save can save again", async () => {
  await failEach(
    async (store) => {
      const state = await store.load<Count>("run");
      const saved = await store.save(state.set("n", 4)).catch(() => state);
      return store.save(saved.set("n", 5));
    },
    async (outcome, disk, what) => {
      const { n } = (await open(disk).load<Count>("run")).data;
      expect(outcome, what).not.toBeInstanceOf(CheckpointConflictError);
      if (outcome instanceof State) expect(n, what).toBe(5);
      else expect([3, 4, 5], what).toContain(n);
    },
  );
});

test("a call that fails in a new run's first save leaves nothing that is not whole", async () => {
  const first = (store: FileStore): Promise<State<Count>> =>
    store.save(State.create<Count>({ n: 1 }, { runId: "new" }));
  await failEach(first, async (outcome, disk, what, isLinked) => {
    const store = open(disk);
    const loaded = await store.load<Count>("new").catch((error: unknown) => error);
    if (outcome instanceof State || (isLinked && loaded instanceof State))
      expect(loaded, what).toBeInstanceOf(State);
    else expect(isWaymarkError(loaded, "CHECKPOINT_NOT_FOUND"), what).toBe(true);
    expect((await store.load<Count>("run")).data.n).toBe(3);
  });
});

test("a call that fails in a delete leaves the newest checkpoint, or nothing", async () => {
  await failEach(
    (store) => store.delete("run"),
    async (outcome, disk, what) => {
      const store = open(disk);
      const loaded = await store.load<Count>("run").catch((error: unknown) => error);
      if (loaded instanceof State) expect(loaded.data.n, what).toBe(3);
      else expect(isWaymarkError(loaded, "CHECKPOINT_NOT_FOUND"), what).toBe(true);
      if (outcome === undefined) expect(loaded, what).not.toBeInstanceOf(State);
      await store.delete("run");
      expect(await store.list()).toEqual([]);
    },
  );
});

test("a call that fails in a quarantine loses nothing, and the older State is used", async () => {
  const corrupt = new TextEncoder().encode("corrupt");
  const before = await savedThrice();
  before.tamper("/.waymark/run/checkpoint_0003.json", () => corrupt);
  const disk = before.settled();
  const { gate, calls } = failAt(-1, "");
  await open(disk.settled(), gate).load("run");
  for (const index of calls.keys()) {
    for (const code of codes) {
      const tried = disk.settled();
      const failing = failAt(index, code);
      const store = open(tried, failing.gate);
      const outcome = await store.load<Count>("run").catch((error: unknown) => error);
      await store.close();
      const what = `${code} in ${failing.calls[index]}`;
      if (outcome instanceof State) expect(outcome.data.n, what).toBe(2);
      else expect(codeOf(outcome), what).toBe(code);
      const kept = [...tried.contents().values()].some((bytes) =>
        Buffer.from(bytes).equals(corrupt),
      );
      expect(kept, what).toBe(true);
      expect((await goOn(open(tried))).sequence, what).toBe(4);
    }
  }
});

test("a rotation that fails is told by an event and tried again at the next save", async () => {
  const disk = await savedThrice();
  let broken = true;
  const store = open(disk, (call, path) => {
    if (broken && call === "unlink" && path.endsWith(".json")) throw systemError("EACCES", path);
  });
  const events: unknown[] = [];
  const emit = (type: string, data: object): unknown => events.push({ type, ...data });
  let state = await store.load<Count>("run");
  state = await store.save(state.set("n", 4), { emit });
  await store.close();
  expect(events).toMatchObject([
    { type: "checkpoint.error", action: "delete", error: expect.stringMatching(/EACCES/) },
  ]);
  expect((await store.history("run")).map((entry) => entry.sequence)).toEqual([4, 3, 2]);
  broken = false;
  await store.save(state.set("n", 5), { emit });
  await store.close();
  expect((await store.history("run")).map((entry) => entry.sequence)).toEqual([5, 4]);
});
