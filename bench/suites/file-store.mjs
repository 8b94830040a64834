import { microsPerStep } from "../lib/contender.mjs";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";

export const name = "file-store";
export const title = "P3, P9, P14: checkpoints in files";

const sizes = [1, 10, 100, 1000];
const floor = "JSON, write, fsync, rename, folder fsync";

export async function run() {
  const tables = [];
  for (const kilobytes of sizes) tables.push(await save(kilobytes));
  for (const kilobytes of sizes) tables.push(await load(kilobytes));
  tables.push(await history());
  return tables;
}

/** Of so many steps that what a run costs besides, its folder and its claim, is a small part of it. */
function save(kilobytes) {
  const steps = kilobytes < 1000 ? 400 : 20;
  const peerSteps = kilobytes < 1000 ? 20 : 5;
  return compare({
    title: `save a state of ${kilobytes} KB after every step (${steps} steps)`,
    unit: "µs/step",
    rounds: 9,
    contenders: [
      { name: floor, role: "floor", ...microsPerStep("raw-files", steps, { kilobytes }) },
      {
        name: "the same, the newest 5 kept",
        role: "reference",
        ...microsPerStep("raw-files", steps, { kilobytes, keep: 5 }),
      },
      isBuilt && {
        name: "waymark, FileStore",
        role: "ours",
        ...microsPerStep("file-store", steps, { kilobytes }),
        goals: kilobytes < 1000 ? [{ id: "P3", times: "floor", atMost: 1.25 }] : [],
      },
      isBuilt && {
        name: 'waymark, FileStore, durability "os"',
        role: "reference",
        ...microsPerStep("file-store", steps, { kilobytes, store: { durability: "os" } }),
      },
      {
        name: "LangGraph.js SqliteSaver, synchronous=FULL",
        role: "peer",
        ...microsPerStep("langgraph-sqlite", peerSteps, { kilobytes, synchronous: "FULL" }),
      },
      {
        name: "LangGraph.js SqliteSaver, default: not synced",
        role: "peer",
        ...microsPerStep("langgraph-sqlite", peerSteps, { kilobytes }),
      },
    ],
  });
}

function load(kilobytes) {
  const steps = kilobytes < 1000 ? 100 : 10;
  const saved = kilobytes < 100 ? 1000 : 100;
  const raw = "read and JSON.parse";
  const isGoal = kilobytes === 10;
  return compare({
    title: `load a state of ${kilobytes} KB and find the next node, after ${saved} steps`,
    unit: "µs",
    rounds: 9,
    contenders: [
      { name: raw, role: "floor", ...microsPerStep("raw-files", steps, { kilobytes, load: true }) },
      isBuilt && {
        name: "waymark, FileStore",
        role: "ours",
        ...microsPerStep("file-store", steps, { kilobytes, what: "load", saved }),
        goals: isGoal ? [{ id: "P9", times: raw, atMost: 3 }] : [],
      },
      {
        name: "LangGraph.js SqliteSaver",
        role: "peer",
        ...microsPerStep("langgraph-sqlite", 10, { kilobytes, what: "load", saved: 100 }),
      },
    ],
  });
}

function history() {
  const kilobytes = 100;
  return compare({
    title: "history of 1,000 kept steps at 100 KB (LangGraph.js: 100 steps)",
    unit: "µs",
    rounds: 5,
    warmUp: 1,
    contenders: [
      isBuilt && {
        name: "waymark, FileStore",
        role: "ours",
        ...microsPerStep("file-store", 5, {
          kilobytes,
          what: "history",
          saved: 998,
          store: { keep: 1000 },
        }),
        goals: [{ id: "P14", atMost: 20_000 }],
      },
      {
        name: "LangGraph.js SqliteSaver, 100 steps",
        role: "peer",
        ...microsPerStep("langgraph-sqlite", 2, { kilobytes, what: "history", saved: 100 }),
      },
    ],
  });
}
