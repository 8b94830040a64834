import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { State, StateGraph } from "waymark";
import { FileStore } from "waymark/stores/file";
import { JournalStore, type JournalStoreOptions } from "waymark/stores/journal";
import { NodeFileSystem } from "../../src/stores/file/node-file-system.js";
import { stateData } from "../arbitraries.js";

const folder = mkdtempSync(join(tmpdir(), "waymark-journal-"));
let roots = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function open(options: JournalStoreOptions = {}): JournalStore {
  return new JournalStore({ durability: "os", root: join(folder, String(++roots)), ...options });
}

function filesOf(store: JournalStore): string[] {
  const names = readdirSync(store.root, { recursive: true, encoding: "utf8" });
  return names.filter((name) => statSync(join(store.root, name)).isFile()).sort();
}

function bytesOf(store: JournalStore): number {
  return filesOf(store).reduce((sum, name) => sum + statSync(join(store.root, name)).size, 0);
}

interface Talk {
  readonly n: number;
  readonly messages: readonly { readonly id: number; readonly text: string }[];
}

const message = (id: number) => ({
  id,
  text: "Cairns mark the way where no path can be seen.".repeat(4),
});
const talk = (count: number, runId = "run"): State<Talk> =>
  State.create<Talk>(
    { n: 0, messages: Array.from({ length: count }, (_, id) => message(id)) },
    { runId },
  );
const say = (state: State<Talk>): State<Talk> =>
  state.merge({ n: state.data.n + 1, messages: [...state.data.messages, message(-state.data.n)] });

async function sayOften(
  store: JournalStore,
  from: State<Talk>,
  times: number,
): Promise<State<Talk>> {
  let state = from;
  for (let count = 0; count < times; count++) state = await store.save(say(state));
  return state;
}

describe("what is written", () => {
  test("a step that changes little of a large State writes little", async () => {
    const store = open();
    const first = await store.save(talk(5000));
    expect(first.bytes).toBeGreaterThan(1_000_000);
    expect((await store.save(say(first))).bytes).toBeLessThan(1000);
  });

  test("a State of which no one knows what it came from is written whole", async () => {
    const store = open();
    const state = await sayOften(store, talk(50), 3);
    expect(state.bytes).toBeLessThan(1000);
    const again = new JournalStore({ root: store.root, durability: "os" });
    const resumed = await again.save(say(await again.load<Talk>("run")));
    const forked = await again.save(
      State.fromJSON<Talk>({ ...resumed.toJSON(), runId: "fork", sequence: 0 }),
    );
    for (const { bytes } of [resumed, forked]) expect(bytes).toBeGreaterThan(10_000);
    expect((await again.save(say(resumed))).bytes).toBeLessThan(1000);
    await again.close();
  });

  test("after so many patches a State is written whole, sooner when they come to more than it", async () => {
    const often = open({ snapshotEvery: 4 });
    let state = await often.save(talk(50));
    const isWhole: boolean[] = [];
    for (let count = 0; count < 8; count++) {
      state = await often.save(say(state));
      isWhole.push((state.bytes ?? 0) > 10_000);
    }
    expect(isWhole).toEqual([false, false, false, true, false, false, false, true]);
    const seldom = open();
    let large = await seldom.save(talk(5, "large"));
    let patches = 0;
    // What has to be read to load it stays small, however many steps there are.
    for (let count = 0; count < 400; count++) {
      large = await seldom.save(large.set("n", count));
      patches = (large.bytes ?? 0) > 1000 ? 0 : patches + (large.bytes ?? 0);
      expect(patches).toBeLessThan(17_000);
    }
  });

  test("the bytes of a growing run are linear in what changed", async () => {
    const store = open();
    await sayOften(store, talk(0), 500);
    const half = bytesOf(store);
    await sayOften(store, await store.load<Talk>("run"), 500);
    const all = bytesOf(store);
    // 1,000 messages of about 200 bytes are 200 KB; written whole each time they were 100 MB.
    expect(all).toBeLessThan(3_000_000);
    expect(all / half).toBeLessThan(2.6);
    await store.compact();
    const { length } = JSON.stringify((await store.load("run")).data);
    expect(bytesOf(store)).toBeLessThan(3 * length);
    await store.close();
  });

  test("disk use is bounded however long the run", async () => {
    const store = open({ logBytes: 50_000, keep: 3 });
    let state = talk(20);
    let most = 0;
    for (let count = 0; count < 1500; count++) {
      const { n, messages } = state.data;
      state = await store.save(
        state.merge({ n: n + 1, messages: messages.with(n % 20, message(n)) }),
      );
      if (count % 100 === 0) most = Math.max(most, bytesOf(store));
    }
    await store.close();
    expect(Math.max(most, bytesOf(store))).toBeLessThan(500_000);
  });

  test("States with dates and maps are written by what changed too", async () => {
    const store = open();
    const entries = Array.from(
      { length: 1000 },
      (_, id) => [id, { at: new Date(id), text: "x".repeat(50) }] as const,
    );
    const first = await store.save(
      State.create({ map: new Map(entries), when: new Date(0) }, { runId: "run" }),
    );
    const second = await store.save(
      first.update((draft) => {
        draft.map.set(500, { at: new Date(1e9), text: "new" });
        draft.map.delete(3);
      }),
    );
    expect(second.bytes).toBeLessThan(1500);
    expect((await store.load("run")).toJSON()).toEqual(second.toJSON());
  });

  test("files and folders are for their owner only", async () => {
    const store = open();
    await sayOften(store, talk(1), 3);
    await store.compact();
    for (const name of filesOf(store)) {
      expect(statSync(join(store.root, name)).mode & 0o777, name).toBe(0o600);
    }
    expect(statSync(store.root).mode & 0o777).toBe(0o700);
  });
});

describe("what is loaded", () => {
  const value = stateData.map((data) => ({ ...data }));
  const step = fc.record({
    set: value,
    drop: fc.nat(5),
    splice: fc.tuple(fc.nat(8), fc.nat(3), fc.array(fc.integer(), { maxLength: 3 })),
    reopen: fc.boolean(),
    compact: fc.boolean(),
  });

  test("is what was saved, at every kept step, after any sequence of updates", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        let store = open({ keep: 4, snapshotEvery: 4, logBytes: 4000 });
        let state = State.create<Record<string, unknown>>({ list: [] }, { runId: "run" });
        const saved: State<Record<string, unknown>>[] = [];
        for (const { set, drop, splice, reopen, compact } of steps) {
          const dropped = Object.keys(state.data)[drop];
          const list = [...(state.data.list as unknown[])].toSpliced(
            ...(splice.slice(0, 2) as [number, number]),
            ...splice[2],
          );
          const rest = Object.fromEntries(
            Object.entries(state.data).filter(([key]) => key !== dropped),
          );
          const json = state.merge(set).toJSON();
          const next = State.fromJSON<Record<string, unknown>>({ ...json, step: saved.length });
          state = await store.save(state.update(() => ({ ...rest, ...next.data, list })));
          saved.push(state);
          if (compact) await store.compact();
          if (reopen) {
            await store.close();
            store = new JournalStore({
              root: store.root,
              durability: "os",
              keep: 4,
              snapshotEvery: 4,
              logBytes: 4000,
            });
          }
          if (reopen && saved.length % 2 === 0) state = await store.load("run");
          // A process that has just started reads the end of the log; once it has read all, that must agree.
          const other = new JournalStore({ root: store.root, durability: "os", keep: 4 });
          const end = await other.load("run");
          await other.history("run");
          for (const one of [end, await other.load("run")])
            expect(JSON.stringify(one.toJSON())).toBe(JSON.stringify(state.toJSON()));
          await other.close();
          for (const one of saved.slice(-4)) {
            const loaded = await store.load("run", { checkpointId: one.checkpointId });
            expect(JSON.stringify(loaded.toJSON())).toBe(JSON.stringify(one.toJSON()));
          }
          const history = await store.history("run");
          expect(history.map(({ checkpointId }) => checkpointId)).toEqual(
            saved
              .slice(-4)
              .reverse()
              .map(({ checkpointId }) => checkpointId),
          );
        }
        await store.close();
        rmSync(store.root, { recursive: true, force: true });
      }),
      { numRuns: 60, endOnFailure: true },
    );
  });

  test.each([
    ["one run", 0],
    ["many runs", 5],
  ])("is read out of the end of a long log of %s by a process that starts", async (_, others) => {
    const store = open();
    let states = Array.from({ length: 1 + others }, (__, id) => talk(30, `run-${id}`));
    for (let step = 0; step < 220; step++) {
      states = await Promise.all(states.map((state) => store.save(say(state))));
    }
    await store.close();
    let bytes = 0;
    class Counting extends NodeFileSystem {
      override async read(file: number, length: number, from?: number): Promise<Uint8Array> {
        bytes += length;
        return super.read(file, length, from);
      }

      override async end(path: string, length: number) {
        const found = await super.end(path, length);
        bytes += found?.bytes.length ?? 0;
        return found;
      }
    }
    for (const state of states) {
      bytes = 0;
      const again = new JournalStore({ root: store.root }, new Counting());
      expect((await again.load(state.runId)).toJSON()).toEqual(state.toJSON());
      expect(bytes).toBeLessThan(bytesOf(store));
      expect([64 * 1024, 1088 * 1024]).toContain(bytes);
      expect((await again.save(say(await again.load<Talk>(state.runId)))).sequence).toBe(221);
      await again.close();
    }
  });

  test("keeps ledger, visits, pauses and results of a run, as a graph writes them", async () => {
    const store = open({ keep: 50 });
    const graph = new StateGraph<{ n: number }>({
      name: "g",
      checkpoint: { store, interval: 1, preserve: true, keep: 50 },
    })
      .addNode("tick", (state, context) => {
        context.ledger.usage({ inputTokens: 7, costUsd: 0.1 });
        context.ledger.decision({ description: `step ${context.step}` });
        return state.set("n", state.data.n + 1);
      })
      .addNode("done", (state) => state)
      .addEdge("tick", "tick", (state) => state.data.n < 20)
      .addEdge("tick", "done")
      .setEntryPoint("tick")
      .setExitPoint("done");
    const final = await graph.execute(State.create({ n: 0 }, { runId: "run" }));
    const loaded = await store.load<{ n: number }>("run");
    expect(loaded.toJSON()).toEqual({ ...final.toJSON() });
    expect(loaded.ledger.decisions).toHaveLength(20);
    expect((await store.history("run")).slice(0, -1).every(({ bytes = 0 }) => bytes < 1500)).toBe(
      true,
    );
    await store.close();
  });

  test("a run can be rolled back and forked, with the history that others see", async () => {
    const store = open({ keep: 20 });
    const third = await sayOften(store, talk(2), 3);
    const [, second] = await store.history("run");
    const old = await store.load<Talk>("run", { checkpointId: second?.checkpointId });
    const back = await store.save(
      old.savedAs({ checkpointId: old.checkpointId, sequence: third.sequence }),
    );
    expect([back.sequence, back.data.n]).toEqual([4, 2]);
    expect((await store.history("run"))[0]?.parentId).toBe(old.checkpointId);
    const again = await store.save(say(back));
    expect((await new JournalStore({ root: store.root }).load("run")).toJSON()).toEqual(
      again.toJSON(),
    );
  });
});

describe("options", () => {
  test.each<[string, object]>([
    ["durability", { durability: "sometimes" }],
    ["durability", { durability: { flushEvery: 0 } }],
    ["snapshotEvery", { snapshotEvery: 0 }],
    ["keep", { keep: 1 }],
    ["logBytes", { logBytes: -1 }],
  ])("refuses a wrong %s", (name, options) => {
    expect(() => new JournalStore(options)).toThrow(`JournalStore.${name}`);
  });

  test("maxBytes refuses, warnBytes tells", async () => {
    const store = open({ maxBytes: 5000, warnBytes: 1000 });
    const events: unknown[] = [];
    const emit = (type: string, data: unknown): unknown => events.push([type, data]);
    await store.save(talk(10), { emit });
    expect(events).toMatchObject([["checkpoint.error", { action: "size" }]]);
    await expect(store.save(talk(100, "big"))).rejects.toMatchObject({ code: "CHECKPOINT_SAVE" });
    expect(await store.list()).toEqual(["run"]);
  });

  test("retention removes finished runs in the background", async () => {
    const store = open({ retention: { maxRuns: 0 } });
    await store.save(State.fromJSON({ ...talk(1, "old").toJSON(), status: "completed" }));
    await store.close();
    expect(await store.list()).toEqual([]);
  });
});

test("export and import copy a run with its history to another store", async () => {
  const from = open({ keep: 10 });
  await sayOften(from, talk(50), 8);
  const to = open({ keep: 3 });
  await to.import(from.export("run"));
  await to.close();
  const again = new JournalStore({ root: to.root, durability: "os", keep: 3 });
  const entries = (list: readonly { bytes?: number }[]): unknown =>
    list.map(({ bytes: _, ...entry }) => entry);
  expect(entries(await again.history("run"))).toEqual(entries(await from.history("run")));
  expect((await again.load("run")).toJSON()).toEqual((await from.load("run")).toJSON());
  expect(bytesOf(again)).toBeLessThan(2 * bytesOf(from));
  await expect(again.import(from.export("run"))).rejects.toMatchObject({
    code: "CHECKPOINT_CONFLICT",
  });
  expect((await again.save(say(await again.load<Talk>("run")))).sequence).toBe(9);
});

test("a store of the other kind in the same root does not mind", async () => {
  const store = open();
  const files = new FileStore({ root: store.root, durability: "os" });
  await store.save(talk(1, "journal"));
  await files.save(talk(1, "file"));
  await store.compact();
  expect([await store.list(), await files.list()]).toEqual([["journal"], ["file"]]);
  await files.close();
});
