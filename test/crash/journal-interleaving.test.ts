import { expect, test } from "vitest";
import { isWaymarkError, State } from "waymark";
import { JournalStore } from "waymark/stores/journal";
import type { FileSystem } from "../../src/stores/file/file-system.js";
import { World } from "./world.js";

/** Every save adds a word of its own, so a State tells all that it was built on. */
interface Words {
  readonly words: readonly string[];
}

/** A save that was acknowledged. */
interface Saved {
  readonly sequence: number;
  readonly words: readonly string[];
  /** When it was asked for and when it was acknowledged, in calls. */
  readonly asked: number;
  readonly told: number;
}

const ORDERS = Number(process.env.ORDERS ?? 100);
let words = 0;

/** A log so small that it is sealed and compacted all the time. */
function open(fileSystem: FileSystem, logBytes = 1200): JournalStore {
  const options = { root: "/w", keep: 2, durability: "os", snapshotEvery: 3, logBytes } as const;
  return new JournalStore(options, fileSystem);
}

async function loadOrStart(store: JournalStore, runId: string): Promise<State<Words>> {
  try {
    return await store.load<Words>(runId);
  } catch (error) {
    if (!isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) throw error;
    return State.create<Words>({ words: [] }, { runId });
  }
}

/** A process that goes on with the run; when another was faster, it takes the run up again once. */
function writer(world: World, saved: Saved[], saves: number, runId = "run"): void {
  world.startOn(async (fileSystem) => {
    const store = open(fileSystem);
    for (let life = 0; life < 2; life++) {
      let state = await loadOrStart(store, runId);
      try {
        for (let count = 0; count < saves; count++) {
          const next = state.set("words", [...state.data.words, `w${++words}`]);
          const asked = world.time;
          state = await store.save(next);
          const { sequence, data } = state;
          saved.push({ sequence, words: data.words, asked, told: world.time });
        }
      } catch (error) {
        if (!isWaymarkError(error, "CHECKPOINT_CONFLICT")) throw error;
      }
    }
    await store.close();
  });
}

/** What somebody finds who comes when all is over. */
function afterwards(world: World, runId = "run"): Promise<State<Words>> {
  return loadOrStart(open(world.disk.mount()), runId);
}

const isPrefix = (short: readonly string[], long: readonly string[]): boolean =>
  short.every((word, index) => long[index] === word);

/** Of all acknowledged saves each builds on the one before; none is lost. */
function checkOneLine(saved: readonly Saved[], found: State<Words>, seed: number): void {
  const bySequence = saved.toSorted((a, b) => a.sequence - b.sequence);
  for (const [index, { sequence, words: built }] of bySequence.entries()) {
    const next = bySequence[index + 1];
    if (next === undefined) break;
    expect(next.sequence, `seed ${seed}: acknowledged twice`).toBeGreaterThan(sequence);
    const text = `seed ${seed}: ${next.sequence} is not built on ${sequence}`;
    expect(isPrefix(built, next.words), text).toBe(true);
  }
  const last = bySequence.at(-1)?.words ?? [];
  expect(isPrefix(last, found.data.words), `seed ${seed}: the last one is lost`).toBe(true);
}

test("of several writers on one run, one wins each checkpoint", async () => {
  let conflicts = 0;
  for (let seed = 1; seed <= ORDERS; seed++) {
    const world = new World(seed);
    const saved: Saved[] = [];
    for (let process = 0; process < 3; process++) writer(world, saved, 6);
    await world.run();
    const found = await afterwards(world);
    checkOneLine(saved, found, seed);
    // Nobody lost to a record that nobody won with.
    expect(found.sequence).toBe(Math.max(...saved.map(({ sequence }) => sequence)));
    conflicts += 36 - saved.length;
  }
  expect(conflicts).toBeGreaterThan(ORDERS);
});

test("writers of several runs share the log and don't disturb each other", async () => {
  for (let seed = 1; seed <= ORDERS / 2; seed++) {
    const world = new World(seed);
    const runs = ["a", "b", "c"].map((runId) => ({ runId, saved: [] as Saved[] }));
    for (const { runId, saved } of runs) {
      writer(world, saved, 4, runId);
      writer(world, saved, 4, runId);
    }
    await world.run();
    for (const { runId, saved } of runs) checkOneLine(saved, await afterwards(world, runId), seed);
  }
});

test("the same when writers are killed in the middle of a call", async () => {
  for (let seed = 1; seed <= ORDERS; seed++) {
    const world = new World(seed);
    const saved: Saved[] = [];
    for (let process = 0; process < 4; process++) writer(world, saved, 6);
    await world.run(0.01);
    checkOneLine(saved, await afterwards(world), seed);
  }
});

test("a State of before a delete is never saved into the run that comes after it", async () => {
  for (let seed = 1; seed <= ORDERS; seed++) {
    const world = new World(seed);
    const saved: Saved[] = [];
    for (let process = 0; process < 3; process++) writer(world, saved, 4);
    world.startOn(async (fileSystem) => {
      const store = open(fileSystem);
      for (let count = 0; count < 3; count++) await store.delete("run");
      await store.close();
    });
    await world.run();
    // The first word tells which of the runs of this name it was.
    for (const first of new Set(saved.map(({ words: built }) => built[0]))) {
      const own = saved.filter(({ words: built }) => built[0] === first);
      const longest = own.toSorted((a, b) => a.words.length - b.words.length).at(-1);
      checkOneLine(own, State.create<Words>({ words: longest?.words ?? [] }), seed);
    }
    const began = saved.filter(({ words: built }) => built.length === 1);
    for (const late of saved) {
      const newest = began
        .filter(({ told }) => told <= late.asked)
        .toSorted((a, b) => a.told - b.told)
        .at(-1);
      if (newest === undefined || late.words[0] === newest.words[0]) continue;
      // Its own run began later than that one, or it would have come back from the dead.
      const own = began.find(({ words: built }) => built[0] === late.words[0]);
      expect(own === undefined || own.told > newest.asked, `seed ${seed}`).toBe(true);
    }
  }
});
