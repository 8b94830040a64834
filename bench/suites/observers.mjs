import { microsPerStep } from "../lib/contender.mjs";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";

export const name = "observers";
export const title = "what each observer costs";

const steps = 20_000;

const observed = (label, ...observers) =>
  isBuilt && { name: label, role: "ours", ...microsPerStep("observed", steps, { observers }) };

/** A step is six events: node.start, state.set, node.complete, edge.evaluate, edge.transition, cycle.detected. */
export async function run() {
  return [
    await compare({
      title: "the one-key cycle (20,000 steps of six events)",
      unit: "µs/step",
      contenders: [
        observed("no observer"),
        observed("one that does nothing", "nothing"),
        observed("progressBar", "bar"),
        observed("markdownProgress", "markdown"),
        observed("loggerObserver", "logger"),
        observed("metrics", "metrics"),
        observed("eventLog", "log"),
        observed("all five", "log", "metrics", "markdown", "logger", "bar"),
      ],
    }),
  ];
}
