import { expect, test } from "vitest";
import { isWaymarkError, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { withoutLinks } from "../../src/testing/crash-file-system.js";
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

const ORDERS = Number(process.env.ORDERS ?? 200);
let words = 0;

async function loadOrStart(store: FileStore): Promise<State<Words>> {
  try {
    return await store.load<Words>("run");
  } catch (error) {
    const isGone = ["CHECKPOINT_NOT_FOUND", "CHECKPOINT_CORRUPT"] as const;
    if (!isGone.some((code) => isWaymarkError(error, code))) throw error;
    return State.create<Words>({ words: [] }, { runId: "run" });
  }
}

/** A process that goes on with the run; when another was faster, it takes the run up again once. */
function writer(
  world: World,
  saved: Saved[],
  saves: number,
  asks = new Map<string, number>(),
): void {
  world.start(async (store) => {
    for (let life = 0; life < 2; life++) {
      let state = await loadOrStart(store);
      try {
        for (let count = 0; count < saves; count++) {
          const word = `w${++words}`;
          const next = state.set("words", [...state.data.words, word]);
          const asked = world.time;
          asks.set(word, asked);
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
function afterwards(world: World): Promise<State<Words>> {
  return loadOrStart(new FileStore({ root: "/w" }, world.disk.mount()));
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
    expect(
      isPrefix(built, next.words),
      `seed ${seed}: ${next.sequence} is not built on ${sequence}`,
    ).toBe(true);
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
    expect(found.sequence).toBe(Math.max(...saved.map(({ sequence }) => sequence)));
    conflicts += 36 - saved.length;
  }
  expect(conflicts).toBeGreaterThan(ORDERS);
});

test("the same where no file can have two names", async () => {
  for (let seed = 1; seed <= ORDERS; seed++) {
    const world = new World(seed, 2, withoutLinks);
    const saved: Saved[] = [];
    for (let process = 0; process < 3; process++) writer(world, saved, 6);
    await world.run();
    checkOneLine(saved, await afterwards(world), seed);
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
    // With rotation it might be removed from there: see append.ts.
    const world = new World(seed, Number.POSITIVE_INFINITY);
    const saved: Saved[] = [];
    const asks = new Map<string, number>();
    for (let process = 0; process < 3; process++) writer(world, saved, 4, asks);
    world.start(async (store) => {
      for (let count = 0; count < 3; count++) {
        await loadOrStart(store);
        await store.delete("run");
      }
      await store.close();
    });
    await world.run();
    // The first word tells which of the runs of this name it was.
    for (const own of byFirstWord(saved)) {
      const longest = own.toSorted((a, b) => a.words.length - b.words.length).at(-1);
      checkOneLine(own, State.create<Words>({ words: longest?.words ?? [] }), seed);
    }
    const left = (await afterwards(world)).data.words;
    const asked = asks.get(left.at(-1) ?? "") ?? 0;
    for (const late of [...saved, { words: left, asked }]) {
      expect(isFromTheDead(late, saved), `seed ${seed}: ${late.words}`).toBe(false);
    }
  }
});

/** Whether this was saved although, before it was asked for, a later run of the same name had begun. */
function isFromTheDead(
  { words: [own], asked }: Pick<Saved, "words" | "asked">,
  saved: readonly Saved[],
): boolean {
  const firsts = saved.filter(({ words: built }) => built.length === 1);
  const began = firsts.find(({ words: [first] }) => first === own);
  return firsts.some(
    (other) =>
      other.words[0] !== own &&
      other.told <= asked &&
      began !== undefined &&
      began.told < other.asked,
  );
}

test("a sequence in quarantine is never given out again", async () => {
  for (let seed = 1; seed <= ORDERS; seed++) {
    const world = new World(seed);
    const saved: Saved[] = [];
    for (let process = 0; process < 3; process++) writer(world, saved, 5);
    world.start(async (store) => {
      for (let count = 0; count < 4; count++) {
        await loadOrStart(store);
        const paths = [...world.disk.contents().keys()];
        const newest = paths
          .filter((path) => /run\/checkpoint_\d+\.json$/.test(path))
          .sort()
          .at(-1);
        if (newest !== undefined) world.disk.tamper(newest, (bytes) => bytes.slice(1));
      }
      await loadOrStart(store);
      await store.close();
    });
    await world.run();
    const sequences = saved.map(({ sequence }) => sequence);
    expect(new Set(sequences).size, `seed ${seed}: acknowledged twice`).toBe(sequences.length);
    const next = await new FileStore({ root: "/w" }, world.disk.mount()).save(
      await afterwards(world),
    );
    expect(next.sequence).toBeGreaterThan(Math.max(...sequences));
  }
});

function byFirstWord(saved: readonly Saved[]): Saved[][] {
  const groups = new Map<string | undefined, Saved[]>();
  for (const one of saved) groups.set(one.words[0], [...(groups.get(one.words[0]) ?? []), one]);
  return [...groups.values()];
}
