import { microsPerStep } from "../lib/contender.mjs";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";

export const name = "memory-checkpoint";
export const title = "P2: a checkpoint in memory after every step";

const sizes = [1, 10, 100];
const unsaved = "waymark, no checkpoint";
const nearly = [{ id: "P2", times: unsaved, atMost: 2.2 }];

export async function run() {
  const tables = [await oneKey()];
  if (isBuilt) tables.push(await untouchedPayload());
  for (const kilobytes of sizes) tables.push(await replacedMessage(kilobytes));
  return tables;
}

function oneKey() {
  const steps = 100_000;
  return compare({
    title: "one-key state (100,000 steps)",
    unit: "µs/step",
    contenders: [
      { name: "bare await loop", role: "floor", ...microsPerStep("bare", steps) },
      isBuilt && { name: unsaved, role: "ours", ...microsPerStep("waymark", steps) },
      isBuilt && {
        name: "waymark, MemoryStore",
        role: "ours",
        ...microsPerStep("waymark", steps, { saved: true }),
        goals: nearly,
      },
    ],
  });
}

/** Whether a save's cost grows with the state: the list is only carried along. */
function untouchedPayload() {
  const rowName = (kilobytes) => `waymark, MemoryStore, ${kilobytes} KB`;
  // A save that walks the state would be a hundred times dearer at 100 KB; half as much again is more than noise makes.
  const sameAsSmallest = [{ id: "P2", times: rowName(sizes[0]), atMost: 1.5 }];
  return compare({
    title: "one key changes beside a list of this size (50,000 steps)",
    unit: "µs/step",
    contenders: sizes.map((kilobytes) => ({
      name: rowName(kilobytes),
      role: "ours",
      ...microsPerStep("waymark", 50_000, { saved: true, kilobytes }),
      goals: kilobytes === sizes[0] ? [] : sameAsSmallest,
    })),
  });
}

function replacedMessage(kilobytes) {
  const steps = 20_000;
  return compare({
    title: `a state of ${kilobytes} KB, one message replaced (20,000 steps; JSON 500, LangGraph.js 100)`,
    unit: "µs/step",
    rounds: 11,
    contenders: [
      { name: "keep the reference", role: "floor", ...microsPerStep("bare", steps, { kilobytes }) },
      isBuilt && {
        name: unsaved,
        role: "ours",
        ...microsPerStep("waymark", steps, { tick: "replace", kilobytes }),
      },
      isBuilt && {
        name: "waymark, MemoryStore",
        role: "ours",
        ...microsPerStep("waymark", steps, { tick: "replace", saved: true, kilobytes }),
        goals: nearly,
      },
      {
        name: "JSON.stringify each time",
        role: "reference",
        ...microsPerStep("bare", 500, { kilobytes, json: true }),
      },
      {
        name: "LangGraph.js MemorySaver",
        role: "peer",
        ...microsPerStep("langgraph", 100, { kilobytes }),
      },
    ],
  });
}
