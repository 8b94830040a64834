import { microsPerStep } from "../lib/contender.mjs";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";

export const name = "engine";
export const title = "P1: one engine step, no checkpoint, no listener";

const steps = 100_000;
const withinTwice = [{ id: "P1", times: "floor", atMost: 2 }];

export async function run() {
  return [
    await compare({
      title: "a cycle of one async node (100,000 steps; XState 20,000, LangGraph.js 400)",
      unit: "µs/step",
      contenders: [
        { name: "bare await loop", role: "floor", ...microsPerStep("bare", steps) },
        isBuilt && {
          name: "waymark, state.set",
          role: "ours",
          ...microsPerStep("waymark", steps, { tick: "set" }),
          goals: withinTwice,
        },
        isBuilt && {
          name: "waymark, shorthand",
          role: "ours",
          ...microsPerStep("waymark", steps, { tick: "shorthand" }),
          goals: withinTwice,
        },
        isBuilt && {
          name: "waymark, state.set, after graphs of other kinds",
          role: "ours",
          ...microsPerStep("waymark", steps, { tick: "set", amongOthers: true }),
        },
        {
          name: "bare loop with immer produce",
          role: "reference",
          ...microsPerStep("immer", steps),
        },
        {
          name: "XState send, state entered again",
          role: "peer",
          ...microsPerStep("xstate", 20_000, { reenter: true }),
          goals: [{ id: "P1", times: "ours", atLeast: 8 }],
        },
        {
          name: "XState send, state never left",
          role: "peer",
          ...microsPerStep("xstate", 20_000, { reenter: false }),
        },
        {
          name: "LangGraph.js",
          role: "peer",
          ...microsPerStep("langgraph", 400),
          goals: [{ id: "P1", times: "ours", atLeast: 500 }],
        },
      ],
    }),
  ];
}
