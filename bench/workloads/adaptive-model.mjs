import { fromSource } from "../lib/from-source.mjs";

/** How often the simulated machine fails: once in so many milliseconds of work. Both know it. */
const FAILURE_MS = 10 * 60 * 1000;
/** How much work and how many crashes the record has already shown, so that the rate is known. */
const CRASHES = 1e6;

/**
 * What `interval: "adaptive"` loses on simulated runs: milliseconds of saves and of expected rework, of ours, of a save
 * after every node, and of the best that is possible with saves between nodes only. The best knows how long each node
 * will take and when the run ends; ours does not.
 * @param {number} traces how many runs of 4,000 nodes, which take 10 ms to 10 s on average
 */
export async function simulate(traces) {
  const { AdaptiveInterval, bestInterval } = await fromSource(
    `export { AdaptiveInterval, bestInterval } from "./run/adaptive.js";`,
  );
  const sum = { ours: 0, every: 0, best: 0, worst: 0 };
  for (let seed = 1; seed <= traces; seed++) {
    const next = random(seed);
    const mean = 10 ** (1 + 3 * next());
    const save = 1 + 20 * next();
    const nodes = Array.from({ length: 4000 }, () => -mean * Math.log(1 - next()));
    const interval = new AdaptiveInterval({}, FAILURE_MS * CRASHES, CRASHES, 0);
    const ours = lost(stretchesOf(interval, nodes, save), save);
    const best = optimum(nodes, save, 4 * bestInterval(save, FAILURE_MS));
    sum.ours += ours;
    sum.every += lost(nodes, save);
    sum.best += best;
    sum.worst = Math.max(sum.worst, ours / best);
  }
  return sum;
}

/** The work between two saves, each time. */
function stretchesOf(interval, nodes, save) {
  interval.saved(save);
  const stretches = [];
  let work = 0;
  for (const durationMs of nodes) {
    work += durationMs;
    if (!interval.isDue({ name: "node", next: "node", durationMs, costUsd: 0 })) continue;
    stretches.push(work);
    interval.begin();
    interval.saved(save);
    work = 0;
  }
  return [...stretches, work];
}

/** Saves and rework: a failure costs half a stretch. */
function lost(stretches, save) {
  return stretches.reduce((sum, work) => sum + lostIn(work, save), 0);
}

function lostIn(work, save) {
  return save + (work * (work + save)) / (2 * FAILURE_MS);
}

/** The dynamic programme of Toueg and Babaoğlu. */
function optimum(nodes, save, longest) {
  const best = [0];
  for (let end = 1; end <= nodes.length; end++) {
    let [least, work] = [Number.POSITIVE_INFINITY, 0];
    for (let from = end - 1; from >= 0 && work <= longest; from--) {
      work += nodes[from];
      least = Math.min(least, best[from] + lostIn(work, save));
    }
    best.push(least);
  }
  return best.at(-1);
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
function random(seed) {
  let state = Math.imul(seed, 0x9e3779b9);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
