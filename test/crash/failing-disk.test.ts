import { basename } from "node:path";
import { describe, expect, test } from "vitest";
import { CheckpointConflictError, isWaymarkError, State, type WaymarkError } from "waymark";
import type { FileStore } from "waymark/stores/file";
import type { Finding } from "../../src/checkpoint/store.js";
import { systemCode } from "../../src/errors.js";
import { sequenceOf } from "../../src/stores/disk/layout.js";
import {
  CrashDisk,
  type Gate,
  systemError,
  withoutLinks,
} from "../../src/testing/crash-file-system.js";
import { linear } from "../graphs.js";
import { nextStep } from "../stores/folders.js";
import { failEach } from "./failing.js";
import { openFileStore as open, ROOT } from "./subjects.js";

interface Count {
  readonly n: number;
}

const { topology } = linear(["a", "b"]);

/** A disk with a run that was saved four times. */
async function savedFourTimes(): Promise<CrashDisk> {
  const disk = new CrashDisk();
  const store = open(disk.mount());
  let state = State.create<Count>({ n: 0 }, { runId: "run" });
  for (let n = 1; n <= 4; n++) state = await store.save(nextStep(state.set("n", n)));
  await store.close();
  return disk.settled();
}

const goOn = async (store: FileStore): Promise<State<Count>> => {
  const state = await store.load<Count>("run");
  return store.save(nextStep(state.set("n", 5)));
};

const load = (store: FileStore, runId = "run"): Promise<unknown> =>
  store.load<Count>(runId).catch((error: unknown) => error);

async function found(store: FileStore): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const finding of store.verify()) findings.push(finding);
  return findings;
}

/** What the file system threw must have become one of our errors, and be its cause. */
function expectExplained(outcome: unknown, what: string, codes: readonly string[]): void {
  const { code, cause } = outcome as WaymarkError;
  expect(codes, `${what}: ${outcome}`).toContain(code);
  expect(what.startsWith(`${systemCode(cause)} `), `${what}: ${outcome}`).toBe(true);
}

const isGone = (loaded: unknown): boolean => isWaymarkError(loaded, "CHECKPOINT_NOT_FOUND");

describe("a failing call", () => {
  test.each([
    ["", () => {}],
    [" (without links)", withoutLinks],
  ] as const)(
    "in a save is a clear error, and leaves the previous checkpoint unchanged%s",
    async (_, gate: Gate) => {
      const disk = await savedFourTimes();
      const calls = await failEach(
        disk,
        open,
        goOn,
        async ({ outcome, disk: tried, what, before }) => {
          const store = open(tried.mount());
          const { n } = (await store.load<Count>("run")).data;
          if (outcome instanceof State) {
            expect(n, what).toBe(5);
          } else {
            // Past this it is there, only not sure to last: the one in flight.
            expect(
              before.some((call) => /^(link|rename)/.test(call)) ? [4, 5] : [4],
              what,
            ).toContain(n);
            expectExplained(outcome, what, ["CHECKPOINT_SAVE", "STORE"]);
          }
          // The fault is gone, and all continues, also the run that was told to ignore it.
          expect((await goOn(store)).data.n, what).toBe(5);
          await store.close();
        },
        gate,
      );
      expect(calls).toBeGreaterThan(20);
    },
  );

  test.each<[string, (store: FileStore) => Promise<unknown>]>([
    ["a load", (store) => store.load("run")],
    ["a claim", async (store) => (await store.claim("run"))?.release()],
    ["a look at who has claimed a run", (store) => store.holder("run")],
    ["a list", (store) => store.list()],
    ["a listing of runs", (store) => store.runs()],
    ["a history", (store) => store.history("run")],
    ["a search for a checkpoint", (store) => store.find("none")],
    ["a delete", (store) => store.delete("run")],
    ["a verification", (store) => found(store)],
    ["the save of a topology", (store) => store.saveTopology(topology)],
    ["a look for a topology", (store) => store.topology(topology.fingerprint)],
  ])("in %s has the code STORE", async (_, action) => {
    let failed = 0;
    await failEach(await savedFourTimes(), open, action, async ({ outcome, what }) => {
      if (!(outcome instanceof Error)) return;
      failed++;
      expectExplained(outcome, what, ["STORE"]);
    });
    expect(failed).toBeGreaterThan(0);
  });

  test("does not keep a continuing run from saving again", async () => {
    await failEach(
      await savedFourTimes(),
      open,
      async (store) => {
        const state = await store.load<Count>("run");
        const saved = await store.save(nextStep(state.set("n", 5))).catch(() => state);
        return store.save(nextStep(saved.set("n", 6)));
      },
      async ({ outcome, disk, what }) => {
        expect(outcome, what).not.toBeInstanceOf(CheckpointConflictError);
        const { n } = (await open(disk.mount()).load<Count>("run")).data;
        expect(outcome instanceof State ? [6] : [4, 5, 6], what).toContain(n);
      },
    );
  });

  test("in a run's first save leaves nothing incomplete", async () => {
    await failEach(
      await savedFourTimes(),
      open,
      (store) => store.save(State.create<Count>({ n: 1 }, { runId: "new" })),
      async ({ outcome, disk, what }) => {
        const store = open(disk.mount());
        const loaded = await load(store, "new");
        if (outcome instanceof State) expect(loaded, what).toBeInstanceOf(State);
        else expect(isGone(loaded) || loaded instanceof State, what).toBe(true);
        expect((await store.load<Count>("run")).data.n).toBe(4);
      },
    );
  });

  test("in a delete leaves the newest checkpoint or nothing", async () => {
    await failEach(
      await savedFourTimes(),
      open,
      (store) => store.delete("run"),
      async ({ outcome, disk, what }) => {
        const store = open(disk.mount());
        const loaded = await load(store);
        if (loaded instanceof State) expect((loaded.data as Count).n, what).toBe(4);
        else expect(isGone(loaded), what).toBe(true);
        if (outcome === undefined) expect(loaded, what).not.toBeInstanceOf(State);
        await store.delete("run");
        expect(await store.list(), what).toEqual([]);
      },
    );
  });
});

test("a failing call in a quarantine loses nothing, and the older State is used", async () => {
  const corrupt = new TextEncoder().encode("corrupt");
  const disk = await savedFourTimes();
  disk.tamper(`${ROOT}/run/checkpoint_0004.json`, () => corrupt);
  await failEach(
    disk,
    open,
    (store) => store.load<Count>("run"),
    async ({ outcome, disk: tried, what }) => {
      if (outcome instanceof State) expect((outcome.data as Count).n, what).toBe(3);
      else expectExplained(outcome, what, ["STORE"]);
      const contents = [...tried.contents().values()];
      expect(
        contents.some((bytes) => Buffer.from(bytes).equals(corrupt)),
        what,
      ).toBe(true);
      expect((await goOn(open(tried.mount()))).sequence, what).toBe(5);
    },
  );
});

test("a failed rotation emits an event and is retried at the next save", async () => {
  const disk = await savedFourTimes();
  let broken = true;
  const gate: Gate = (call, path) => {
    if (broken && call === "unlink" && path.endsWith(".json")) throw systemError("EACCES", path);
  };
  const store = open(disk.mount(gate));
  const events: unknown[] = [];
  const emit = (type: string, data: object): unknown => events.push({ type, ...data });
  const sequences = () =>
    [...disk.contents().keys()].flatMap((path) => sequenceOf(basename(path)) ?? []);
  let state = await store.load<Count>("run");
  state = await store.save(nextStep(state.set("n", 5)), { emit });
  await store.close();
  const error = expect.stringMatching(/EACCES/);
  expect(events).toMatchObject([{ type: "checkpoint.error", action: "delete", error }]);
  expect(sequences()).toEqual([3, 4, 5]);
  broken = false;
  await store.save(nextStep(state.set("n", 6)), { emit });
  await store.close();
  expect(sequences()).toEqual([5, 6]);
});
