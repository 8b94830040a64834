import { describe, expect, test } from "vitest";
import { AdaptiveInterval, bestInterval } from "../../src/run/adaptive.js";

/** A generator of numbers from 0 to 1 that is the same for the same seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Time lost to saves, and to rework expected at one failure in `m` milliseconds: a failure costs half a stretch. */
function lost(stretches: readonly number[], c: number, m: number): number {
  return stretches.reduce((sum, work) => sum + c + (work * (work + c)) / (2 * m), 0);
}

/** The stretches between saves that lose least, by the dynamic programme of Toueg and Babaoğlu. */
function optimum(nodes: readonly number[], c: number, m: number): number {
  const best = [0];
  for (let end = 1; end <= nodes.length; end++) {
    let [least, work] = [Number.POSITIVE_INFINITY, 0];
    for (let from = end - 1; from >= 0; from--) {
      work += nodes[from] ?? 0;
      least = Math.min(least, (best[from] ?? 0) + lost([work], c, m));
      if (work > 20 * bestInterval(c, m)) break;
    }
    best.push(least);
  }
  return best.at(-1) ?? 0;
}

describe("the adaptive interval", () => {
  test("loses at most 5 % more than the optimum, over 100 traces", () => {
    let [ours, ideal] = [0, 0];
    for (let seed = 1; seed <= 100; seed++) {
      const next = random(seed);
      const mean = 10 ** (1 + 3 * next());
      const c = 1 + 20 * next();
      const nodes = Array.from({ length: 400 }, () => -mean * Math.log(1 - next()));
      const interval = new AdaptiveInterval({}, 0, 0, 0);
      interval.saved(c, 0);
      const stretches: number[] = [];
      let work = 0;
      for (const node of nodes) {
        work += node;
        if (!interval.isDue(node, 0)) continue;
        stretches.push(work);
        interval.saved(c, 0);
        work = 0;
      }
      stretches.push(work);
      const { failureMs } = interval.decision;
      ours += lost(stretches, c, failureMs);
      ideal += optimum(nodes, c, failureMs);
    }
    expect(ours / ideal).toBeLessThan(1.05);
  });

  test("saves after each node that takes seconds, and hardly ever after one of a millisecond", () => {
    const slow = new AdaptiveInterval({}, 0, 0, 0);
    const quick = new AdaptiveInterval({}, 0, 0, 0);
    slow.saved(1, 0);
    quick.saved(1, 0);
    let saves = 0;
    for (let node = 0; node < 5000; node++) {
      if (quick.isDue(1, 0)) {
        saves++;
        quick.saved(1, 0);
      }
    }
    expect(slow.isDue(3000, 0)).toBe(true);
    // One save of a millisecond in more than a hundred nodes of one: less than a hundredth.
    expect(saves).toBeGreaterThan(0);
    expect(saves).toBeLessThan(50);
  });

  test("saves more often in a run that has crashed", () => {
    const calm = new AdaptiveInterval({}, 60_000, 0, 0).decision;
    const troubled = new AdaptiveInterval({}, 60_000, 8, 0).decision;
    expect(troubled.intervalMs).toBeLessThan(calm.intervalMs / 2);
  });

  test("keeps below maxLoss", () => {
    const interval = new AdaptiveInterval({ ms: 100 }, 0, 0, 0);
    interval.saved(1000, 0);
    let unsaved = 0;
    for (let node = 0; node < 100; node++) {
      unsaved += 30;
      if (interval.isDue(30, 0)) {
        interval.saved(1000, 0);
        unsaved = 0;
      }
      expect(unsaved).toBeLessThanOrEqual(100);
    }
  });
});
