import { microsPerStep } from "../lib/contender.mjs";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";

export const name = "listener";
export const title = "P13: listeners on every event";

const steps = 100_000;
const unheard = "waymark, nobody listens";

export async function run() {
  return [
    await compare({
      title: "the one-key cycle (100,000 steps)",
      unit: "µs/step",
      contenders: [
        { name: "bare await loop", role: "floor", ...microsPerStep("bare", steps) },
        isBuilt && { name: unheard, role: "ours", ...microsPerStep("waymark", steps) },
        isBuilt && {
          name: 'waymark, one "*" listener',
          role: "ours",
          ...microsPerStep("waymark", steps, { listeners: 1 }),
          goals: [{ id: "P13", times: unheard, atMost: 2 }],
        },
        isBuilt && {
          name: 'waymark, five "*" listeners',
          role: "ours",
          ...microsPerStep("waymark", steps, { listeners: 5 }),
        },
      ],
    }),
  ];
}
