import { describe, expect, test } from "vitest";
import { isWaymarkError, State } from "waymark";
import type { FileStore } from "waymark/stores/file";
import type { FileSystem } from "../../src/stores/disk/file-system.js";
import { withoutLinks } from "../../src/testing/crash-file-system.js";
import { nextStep } from "../stores/folders.js";
import { openFileStore } from "./subjects.js";
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

/** How many orders of calls to try. */
const ORDERS = Number(process.env.ORDERS ?? 200);
let words = 0;

async function loadOrStart(store: FileStore, runId = "run"): Promise<State<Words>> {
  try {
    return await store.load<Words>(runId);
  } catch (error) {
    const isGone = ["CHECKPOINT_NOT_FOUND", "CHECKPOINT_CORRUPT"] as const;
    if (!isGone.some((code) => isWaymarkError(error, code))) throw error;
    return State.create<Words>({ words: [] }, { runId });
  }
}

/** Several processes on the runs of one store. */
class Crowd {
  readonly world: World;
  readonly saved = new Map<string, Saved[]>();
  /** When each word was asked to be saved. */
  readonly asks = new Map<string, number>();
  readonly #open: (fileSystem: FileSystem) => FileStore;

  constructor(seed: number, keep = 2, gate = () => {}) {
    this.world = new World(seed, gate);
    this.#open = (fileSystem) => openFileStore(fileSystem, { keep, durability: "os" });
  }

  /** Starts a process that does something with a store of its own. */
  start(live: (store: FileStore) => Promise<void>): void {
    this.world.start(async (fileSystem) => {
      const store = this.#open(fileSystem);
      await live(store);
      await store.close();
    });
  }

  /** Starts processes that continue a run; when another was faster, each takes the run up again once. */
  write(writers: number, saves: number, runId = "run"): void {
    const saved = this.of(runId);
    for (let count = 0; count < writers; count++) {
      this.start(async (store) => {
        for (let life = 0; life < 2; life++) await this.#goOn(store, saves, runId, saved);
      });
    }
  }

  /** The saves of a run that were acknowledged. */
  of(runId = "run"): Saved[] {
    const saved = this.saved.get(runId) ?? [];
    this.saved.set(runId, saved);
    return saved;
  }

  /** What somebody finds who comes when all is over. */
  afterwards(runId = "run"): Promise<State<Words>> {
    return loadOrStart(this.#open(this.world.disk.mount()), runId);
  }

  async #goOn(store: FileStore, saves: number, runId: string, saved: Saved[]): Promise<void> {
    let state = await loadOrStart(store, runId);
    try {
      for (let count = 0; count < saves; count++) {
        const word = `w${++words}`;
        const asked = this.world.time;
        this.asks.set(word, asked);
        const next = state.set("words", [...state.data.words, word]);
        // Of two saves in one step the newer stays, and steps before them: what is removed is not the oldest.
        state = await store.save(this.world.chance(0.5) ? next : nextStep(next));
        const { sequence, data } = state;
        saved.push({ sequence, words: data.words, asked, told: this.world.time });
      }
    } catch (error) {
      if (!isWaymarkError(error, "CHECKPOINT_CONFLICT")) throw error;
    }
  }
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

describe("several processes on one FileStore", () => {
  test("writing one run: one wins each checkpoint", async () => {
    let conflicts = 0;
    for (let seed = 1; seed <= ORDERS; seed++) {
      const crowd = new Crowd(seed);
      crowd.write(3, 6);
      await crowd.world.run();
      const found = await crowd.afterwards();
      const saved = crowd.of();
      checkOneLine(saved, found, seed);
      // Nobody lost to a checkpoint that nobody won with.
      expect(found.sequence).toBe(Math.max(...saved.map(({ sequence }) => sequence)));
      conflicts += 36 - saved.length;
    }
    expect(conflicts).toBeGreaterThan(ORDERS);
  });

  test("writing one run without hard links: one wins each checkpoint", async () => {
    for (let seed = 1; seed <= ORDERS; seed++) {
      const crowd = new Crowd(seed, 2, withoutLinks as () => void);
      crowd.write(3, 6);
      await crowd.world.run();
      checkOneLine(crowd.of(), await crowd.afterwards(), seed);
    }
  });

  test("writing one run and killed during a call: one wins each checkpoint", async () => {
    for (let seed = 1; seed <= ORDERS; seed++) {
      const crowd = new Crowd(seed);
      crowd.write(4, 6);
      await crowd.world.run(0.01);
      checkOneLine(crowd.of(), await crowd.afterwards(), seed);
    }
  });

  test("never save a State from before a delete into the run that follows it", async () => {
    for (let seed = 1; seed <= ORDERS; seed++) {
      // With rotation of files it might be removed from there: see run-writer.ts.
      const crowd = new Crowd(seed, Number.POSITIVE_INFINITY);
      crowd.write(3, 4);
      crowd.start(async (store) => {
        for (let count = 0; count < 3; count++) {
          await loadOrStart(store);
          await store.delete("run");
        }
      });
      await crowd.world.run();
      const saved = crowd.of();
      // The first word tells which of the runs of this name it was.
      for (const first of new Set(saved.map(({ words: [one] }) => one))) {
        const own = saved.filter(({ words: [one] }) => one === first);
        const longest = own.toSorted((a, b) => a.words.length - b.words.length).at(-1);
        checkOneLine(own, State.create<Words>({ words: longest?.words ?? [] }), seed);
      }
      const left = (await crowd.afterwards()).data.words;
      const asked = crowd.asks.get(left.at(-1) ?? "") ?? 0;
      for (const late of [...saved, { words: left, asked }]) {
        expect(isFromTheDead(late, saved), `seed ${seed}: ${late.words}`).toBe(false);
      }
    }
  });
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

test("a quarantined sequence is never reused", async () => {
  for (let seed = 1; seed <= ORDERS; seed++) {
    const crowd = new Crowd(seed);
    const { disk } = crowd.world;
    crowd.write(3, 5);
    crowd.start(async (store) => {
      for (let count = 0; count < 4; count++) {
        await loadOrStart(store);
        const newest = [...disk.contents().keys()]
          .filter((path) => /run\/checkpoint_\d+\.json$/.test(path))
          .sort()
          .at(-1);
        if (newest !== undefined) disk.tamper(newest, (bytes) => bytes.slice(1));
      }
      await loadOrStart(store);
    });
    await crowd.world.run();
    const sequences = crowd.of().map(({ sequence }) => sequence);
    expect(new Set(sequences).size, `seed ${seed}: acknowledged twice`).toBe(sequences.length);
    const next = await openFileStore(disk.mount()).save(await crowd.afterwards());
    expect(next.sequence).toBeGreaterThan(Math.max(...sequences));
  }
});
