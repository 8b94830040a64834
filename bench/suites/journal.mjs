import { microsPerStep } from "../contender.mjs";
import { journalDisk, langgraphDisk } from "../journal-disk.mjs";
import { compare } from "../measure.mjs";
import { isBuilt } from "../waymark.mjs";

export const name = "journal";
export const title = "P4, P5, P6, P9, P14: checkpoints in a journal";

const floor = "append the change, fdatasync";
const sqlite = "LangGraph.js SqliteSaver, synchronous=FULL";
const ours = "waymark, JournalStore";
const keep = 5;

export async function run() {
  const tables = [];
  for (const kilobytes of [1, 10, 100, 1000]) tables.push(await alone(kilobytes));
  for (const kilobytes of [1, 10, 100, 1000]) tables.push(await together(kilobytes));
  if (isBuilt) tables.push(await disk(), await load(), await history());
  return tables;
}

function alone(kilobytes) {
  const steps = kilobytes < 1000 ? 1000 : 40;
  const isGoal = kilobytes === 10 || kilobytes === 100;
  return compare({
    title: `one run, a state of ${kilobytes} KB, one message replaced per step (${steps} steps)`,
    unit: "µs/step",
    rounds: 5,
    warmUp: 1,
    contenders: [
      { name: floor, role: "floor", ...microsPerStep("raw-append", steps, { kilobytes }) },
      {
        name: `${floor}, blocking calls`,
        role: "reference",
        ...microsPerStep("raw-append", steps, { kilobytes, blocking: true }),
      },
      isBuilt && {
        name: ours,
        role: "ours",
        ...microsPerStep("journal", steps, { kilobytes }),
        goals: isGoal ? [{ id: "P4", times: "floor", atMost: 1.3 }] : [],
      },
      isBuilt && {
        name: "waymark, FileStore",
        role: "reference",
        ...microsPerStep("file-store", Math.min(steps, 50), { kilobytes }),
      },
      {
        name: "LMDB, all of it, flushed",
        role: "peer",
        ...microsPerStep("lmdb", Math.min(steps, 50), { kilobytes }),
      },
      {
        name: sqlite,
        role: "peer",
        ...microsPerStep("langgraph-sqlite", 20, { kilobytes, synchronous: "FULL" }),
        goals: kilobytes === 100 ? [{ id: "P4", times: "ours", atLeast: 7 }] : [],
      },
      {
        name: `${sqlite}, only the change (DeltaChannel, beta)`,
        role: "peer",
        ...microsPerStep("langgraph-sqlite", 20, { kilobytes, synchronous: "FULL", kind: "delta" }),
        goals: kilobytes === 100 ? [{ id: "P4", times: "ours", atLeast: 3 }] : [],
      },
    ],
  });
}

function together(kilobytes) {
  const runs = 100;
  const steps = kilobytes < 1000 ? 10_000 : 1000;
  // What writes a hundred megabytes for one step of all runs is measured by less.
  const isHuge = kilobytes === 1000;
  return compare({
    title: `${runs} runs at once, a state of ${kilobytes} KB each (${steps} steps together)`,
    unit: "µs/step",
    rounds: isHuge ? 3 : 5,
    warmUp: 1,
    contenders: [
      {
        name: "append the change, one fdatasync for all that wait",
        role: "floor",
        ...microsPerStep("raw-append", steps, { kilobytes, runs }),
      },
      isBuilt && {
        name: ours,
        role: "ours",
        ...microsPerStep("journal", steps, { kilobytes, runs }),
        goals: isHuge ? [] : [{ id: "P5", times: "floor", atMost: 1.5 }],
      },
      isBuilt && {
        name: "waymark, JournalStore, one run",
        role: "reference",
        ...microsPerStep("journal", isHuge ? 40 : 1000, { kilobytes }),
        goals: isHuge ? [] : [{ id: "P5", times: "ours", atLeast: 10 }],
      },
      isBuilt &&
        !isHuge && {
          name: "waymark, FileStore",
          role: "reference",
          ...microsPerStep("file-store", 300, { kilobytes, runs }),
        },
      !isHuge && {
        name: "LMDB, all of it, flushed",
        role: "peer",
        ...microsPerStep("lmdb", 1000, { kilobytes, runs }),
      },
      !isHuge && {
        name: sqlite,
        role: "peer",
        ...microsPerStep("langgraph-sqlite", 200, { kilobytes, runs, synchronous: "FULL" }),
        goals: [{ id: "P5", times: "ours", atLeast: 35 }],
      },
    ],
  });
}

async function disk() {
  const half = await journalDisk(500);
  const { before, after, state } = await journalDisk(1000);
  const [langgraphHalf, langgraph] = [await langgraphDisk(500), await langgraphDisk(1000)];
  return compare({
    title: "disk after 1,000 steps of a list that grows to 200 KB",
    unit: "MB",
    rounds: 1,
    warmUp: 0,
    contenders: [
      { name: "the state", role: "floor", sample: () => state },
      {
        name: `${ours}, as it is`,
        role: "ours",
        sample: () => before,
        goals: [{ id: "P6", atMost: 5 }],
      },
      {
        name: `${ours}, compacted`,
        role: "ours",
        sample: () => after,
        goals: [{ id: "P6", times: "floor", atMost: 3 * keep }],
      },
      { name: `${ours}, after 500 steps`, role: "reference", sample: () => half.before },
      { name: "LangGraph.js SqliteSaver", role: "peer", sample: () => langgraph },
      {
        name: "LangGraph.js SqliteSaver, after 500 steps",
        role: "peer",
        sample: () => langgraphHalf,
      },
    ],
  });
}

function load() {
  const kilobytes = 10;
  const raw = "read and JSON.parse";
  return compare({
    title: "load a state of 10 KB and find the next node, after 1,000 steps, as a new process",
    unit: "µs",
    rounds: 9,
    contenders: [
      { name: raw, role: "floor", ...microsPerStep("raw-files", 100, { kilobytes, load: true }) },
      {
        name: ours,
        role: "ours",
        ...microsPerStep("journal", 100, { kilobytes, what: "load", saved: 1000 }),
        goals: [
          { id: "P9", atMost: 5000 },
          { id: "P9", times: raw, atMost: 3 },
        ],
      },
    ],
  });
}

function history() {
  const options = { kilobytes: 100, what: "history", saved: 998, store: { keep: 1000 } };
  return compare({
    title: "history of 1,000 kept steps at 100 KB, as a new process",
    unit: "µs",
    rounds: 5,
    warmUp: 1,
    contenders: [
      {
        name: ours,
        role: "ours",
        ...microsPerStep("journal", 5, options),
        goals: [{ id: "P14", atMost: 20_000 }],
      },
    ],
  });
}
