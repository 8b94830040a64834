import { fromSource } from "./from-source.mjs";

/**
 * What `interval: "adaptive"` loses on simulated runs: milliseconds of saves and of expected rework, of ours, of a save
 * after every node, and of the best that is possible with saves between nodes only.
 * @param {number} traces how many runs of 400 nodes, which take 10 ms to 10 s on average
 */
export async function simulate(traces) {
  const { AdaptiveInterval, bestInterval } = await fromSource(
    `export { AdaptiveInterval, bestInterval } from "./run/adaptive.js";`,
  );
  const sum = { ours: 0, every: 0, best: 0 };
  for (let seed = 1; seed <= traces; seed++) {
    const next = random(seed);
    const mean = 10 ** (1 + 3 * next());
    const save = 1 + 20 * next();
    const nodes = Array.from({ length: 400 }, () => -mean * Math.log(1 - next()));
    const interval = new AdaptiveInterval({}, 0, 0, 0);
    const stretches = stretchesOf(interval, nodes, save);
    const { failureMs } = interval.decision;
    sum.ours += lost(stretches, save, failureMs);
    sum.every += lost(nodes, save, failureMs);
    sum.best += optimum(nodes, save, failureMs, 20 * bestInterval(save, failureMs));
  }
  return sum;
}

/** The work between two saves, each time. */
function stretchesOf(interval, nodes, save) {
  interval.saved(save, 0);
  const stretches = [];
  let work = 0;
  for (const node of nodes) {
    work += node;
    if (!interval.isDue(node, 0)) continue;
    stretches.push(work);
    interval.saved(save, 0);
    work = 0;
  }
  return [...stretches, work];
}

/** Saves, and rework at one failure in `failure` milliseconds: a failure costs half a stretch. */
function lost(stretches, save, failure) {
  return stretches.reduce((sum, work) => sum + save + (work * (work + save)) / (2 * failure), 0);
}

/** The dynamic programme of Toueg and Babaoğlu. */
function optimum(nodes, save, failure, longest) {
  const best = [0];
  for (let end = 1; end <= nodes.length; end++) {
    let [least, work] = [Number.POSITIVE_INFINITY, 0];
    for (let from = end - 1; from >= 0 && work <= longest; from--) {
      work += nodes[from];
      least = Math.min(least, best[from] + lost([work], save, failure));
    }
    best.push(least);
  }
  return best.at(-1);
}

/** Numbers from 0 to 1 that are the same for the same seed. */
function random(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
