import { microsPerStep } from "../lib/contender.mjs";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";
import { simulate } from "../workloads/adaptive-model.mjs";

export const name = "adaptive";
export const title = 'P16: interval "adaptive"';

export async function run() {
  if (!isBuilt) return [];
  const lost = await simulate(100);
  return [await simulated(lost), await worst(lost), await overhead()];
}

function simulated({ ours, every, best }) {
  const seconds = (value) => () => value / 1000;
  return compare({
    title: "time lost to saves and expected rework, 100 simulated runs together",
    unit: "s",
    rounds: 1,
    warmUp: 0,
    contenders: [
      { name: "the optimum (Toueg and Babaoğlu)", role: "floor", sample: seconds(best) },
      {
        name: 'waymark, interval "adaptive"',
        role: "ours",
        sample: seconds(ours),
        goals: [{ id: "P16", times: "floor", atMost: 1.05 }],
      },
      { name: "a save after every node", role: "reference", sample: seconds(every) },
    ],
  });
}

function worst({ worst: ratio }) {
  return compare({
    title: "the one of these runs that loses most, over its own optimum",
    unit: "×",
    rounds: 1,
    warmUp: 0,
    contenders: [
      { name: "the optimum (Toueg and Babaoğlu)", role: "floor", sample: () => 1 },
      {
        name: 'waymark, interval "adaptive"',
        role: "ours",
        sample: () => ratio,
        goals: [{ id: "P16", times: "floor", atMost: 1.05 }],
      },
    ],
  });
}

function overhead() {
  const steps = 1000;
  const row = (interval) => microsPerStep("adaptive", steps, { interval });
  return compare({
    title: `nodes of 1 ms on the file store (${steps} steps)`,
    unit: "µs/step",
    rounds: 5,
    warmUp: 1,
    contenders: [
      { name: "no checkpoint", role: "floor", ...row(0) },
      {
        name: 'waymark, interval "adaptive"',
        role: "ours",
        ...row("adaptive"),
        goals: [{ id: "P16", times: "floor", atMost: 1.01 }],
      },
      { name: "waymark, interval 1", role: "reference", ...row(1) },
    ],
  });
}
