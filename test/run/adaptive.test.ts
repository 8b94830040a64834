import { describe, expect, test } from "vitest";
import { AdaptiveInterval, bestInterval } from "../../src/run/saving/adaptive.js";

/** A generator of numbers from 0 to 1 that is the same for the same seed (mulberry32). */
function random(seed: number): () => number {
  let state = Math.imul(seed, 0x9e3779b9);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One failure in ten minutes of work, which the record has shown so often that both sides know it. */
const FAILURE_MS = 10 * 60 * 1000;
const CRASHES = 1e6;

/** Time lost to a save, and to rework expected of the stretch before it: a failure costs half a stretch. */
function lost(work: number, c: number): number {
  return c + (work * (work + c)) / (2 * FAILURE_MS);
}

/** What the stretches between saves that lose least lose, by the dynamic programme of Toueg and Babaoğlu. */
function optimum(nodes: readonly number[], c: number): number {
  const best = [0];
  const longest = 4 * bestInterval(c, FAILURE_MS);
  for (let end = 1; end <= nodes.length; end++) {
    let [least, work] = [Number.POSITIVE_INFINITY, 0];
    for (let from = end - 1; from >= 0 && work <= longest; from--) {
      work += nodes[from] ?? 0;
      least = Math.min(least, (best[from] ?? 0) + lost(work, c));
    }
    best.push(least);
  }
  return best.at(-1) ?? 0;
}

/** What `interval` loses on a run of nodes that take turns. */
function lostBy(interval: AdaptiveInterval, nodes: readonly number[], c: number, kinds: number) {
  interval.saved(c);
  let [sum, work] = [0, 0];
  for (const [index, durationMs] of nodes.entries()) {
    work += durationMs;
    const [name, next] = [String(index % kinds), String((index + 1) % kinds)];
    if (!interval.isDue({ name, next, durationMs, costUsd: 0 })) continue;
    sum += lost(work, c);
    interval.begin();
    interval.saved(c);
    work = 0;
  }
  return sum + lost(work, c);
}

/** How long the nodes of a run take; the first argument is their mean. */
const traces: Record<string, (mean: number, next: () => number, index: number) => number> = {
  "any length": (mean, next) => -mean * Math.log(1 - next()),
  "one length": (mean) => mean,
  "two lengths": (mean, next) => (next() < 0.2 ? 5 : 0.01) * mean,
  "a length for each node of a cycle": (mean, next, index) =>
    ([1, 0.1, 0.1, 3][index % 4] ?? 0) * mean * (0.8 + 0.4 * next()),
};

const node = (durationMs: number, costUsd = 0) => ({ name: "n", next: "n", durationMs, costUsd });

describe("the adaptive interval", () => {
  test.each(Object.entries(traces))(
    "with nodes of %s, costs at most 5 % more than the optimum in each of 100 runs",
    (_name, length) => {
      const ratios = Array.from({ length: 100 }, (_, seed) => {
        const next = random(seed + 1);
        const mean = 10 ** (1 + 3 * next());
        const c = 1 + 20 * next();
        const nodes = Array.from({ length: 4000 }, (_, index) => length(mean, next, index));
        const interval = new AdaptiveInterval({}, FAILURE_MS * CRASHES, CRASHES, 0);
        return lostBy(interval, nodes, c, 4) / optimum(nodes, c);
      });
      expect(Math.max(...ratios)).toBeLessThan(1.05);
    },
  );

  test("saves after each node that takes seconds, and rarely after one of a millisecond", () => {
    const slow = new AdaptiveInterval({}, 0, 0, 0);
    const quick = new AdaptiveInterval({}, 0, 0, 0);
    slow.saved(1);
    quick.saved(1);
    let saves = 0;
    for (let step = 0; step < 5000; step++) {
      if (quick.isDue(node(1))) {
        saves++;
        quick.begin();
        quick.saved(1);
      }
    }
    expect(slow.isDue(node(3000))).toBe(true);
    // One save of a millisecond in more than a hundred nodes of one: less than a hundredth.
    expect(saves).toBeGreaterThan(0);
    expect(saves).toBeLessThan(50);
  });

  test("saves more often in a run that has crashed", () => {
    const calm = new AdaptiveInterval({}, 60_000, 0, 0).decision;
    const troubled = new AdaptiveInterval({}, 60_000, 8, 0).decision;
    expect(troubled.intervalMs).toBeLessThan(calm.intervalMs / 2);
  });

  test("stays below maxLoss", () => {
    const interval = new AdaptiveInterval({ ms: 100 }, 0, 0, 0);
    interval.saved(1000);
    let unsaved = 0;
    for (let step = 0; step < 100; step++) {
      unsaved += 30;
      if (interval.isDue(node(30))) {
        interval.begin();
        unsaved = 0;
      }
      expect(unsaved).toBeLessThanOrEqual(100);
    }
  });

  test("counts the cost of one node at a time", () => {
    const interval = new AdaptiveInterval({ costUsd: 1 }, 0, 0, 0);
    interval.saved(1000);
    const due = Array.from({ length: 9 }, (_, step) => {
      const isDue = interval.isDue(node(1, 0.3 * (step + 1)));
      if (isDue) interval.begin();
      return isDue;
    });
    // Three nodes are 0.9; a fourth would be too much.
    expect(due.map((isDue) => (isDue ? "save" : "")).join()).toBe(",,save,,,save,,,save");
  });

  test("saves sooner before a node known to be long than before a short one", () => {
    const interval = new AdaptiveInterval({}, 0, 0, 0);
    interval.saved(1);
    const short = { name: "short", durationMs: 200, costUsd: 0 };
    for (const next of ["short", "long"]) interval.isDue({ ...short, next });
    interval.isDue({ name: "long", next: "short", durationMs: 2000, costUsd: 0 });
    interval.begin();
    expect(interval.isDue({ ...short, next: "short" })).toBe(false);
    expect(interval.isDue({ ...short, next: "long" })).toBe(true);
    expect(interval.begin().rule).toBe("interval");
  });

  test("counts the work of a failed save as unsaved again", () => {
    const interval = new AdaptiveInterval({}, 0, 0, 0);
    interval.isDue(node(50, 0.5));
    interval.failed(interval.begin());
    interval.isDue(node(20, 0.7));
    expect(interval.decision).toMatchObject({ unsavedMs: 70, unsavedUsd: 0.7 });
  });
});
