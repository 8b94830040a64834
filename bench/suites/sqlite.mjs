import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { microsPerStep } from "../lib/contender.mjs";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";

export const name = "sqlite";
export const title = "P4, P5, P6, P9, P14: checkpoints in SQLite";

const ours = "waymark, SqliteStore";
const floor = "one transaction: the change, and the run's row";
const shared = "one transaction for all that wait";
const langgraph = "LangGraph.js SqliteSaver, synchronous=FULL";
const keep = 5;
const runs = 100;

export async function run() {
  const tables = [];
  for (const kilobytes of [1, 10, 100, 1000]) tables.push(await alone(kilobytes));
  for (const kilobytes of [1, 10, 100]) tables.push(await together(kilobytes));
  if (!isBuilt) return tables;
  return [
    ...tables,
    await stall(),
    await disk(),
    ...(await loads()),
    await history(),
    await page(),
  ];
}

function alone(kilobytes) {
  const steps = kilobytes < 1000 ? 400 : 40;
  const atLeast = { 10: 5, 100: 8 }[kilobytes];
  return compare({
    title: `one run, a state of ${kilobytes} KB, one message replaced per step (${steps} steps)`,
    unit: "µs/step",
    rounds: 5,
    warmUp: 1,
    contenders: [
      { name: floor, role: "floor", ...microsPerStep("raw-sqlite", steps, { kilobytes }) },
      isBuilt && {
        name: ours,
        role: "ours",
        ...microsPerStep("sqlite", steps, { kilobytes }),
        goals: kilobytes < 1000 ? [{ id: "P4", times: "floor", atMost: 1.4 }] : [],
      },
      isBuilt && {
        name: 'waymark, SqliteStore, durability "os"',
        role: "reference",
        ...microsPerStep("sqlite", steps, { kilobytes, store: { durability: "os" } }),
      },
      isBuilt && {
        name: "waymark, FileStore",
        role: "reference",
        ...microsPerStep("file-store", Math.min(steps, 50), { kilobytes }),
      },
      {
        name: langgraph,
        role: "peer",
        ...microsPerStep("langgraph-sqlite", 20, { kilobytes, synchronous: "FULL" }),
        goals: atLeast === undefined ? [] : [{ id: "P4", times: "ours", atLeast }],
      },
      {
        name: `${langgraph}, only the change (DeltaChannel, beta)`,
        role: "peer",
        ...microsPerStep("langgraph-sqlite", 20, { kilobytes, synchronous: "FULL", kind: "delta" }),
      },
    ],
  });
}

function together(kilobytes) {
  const steps = 5000;
  return compare({
    title: `${runs} runs at once, a state of ${kilobytes} KB each (${steps} steps together)`,
    unit: "µs/step",
    rounds: 5,
    warmUp: 1,
    contenders: [
      { name: shared, role: "floor", ...microsPerStep("raw-sqlite", steps, { kilobytes, runs }) },
      isBuilt && {
        name: ours,
        role: "ours",
        ...microsPerStep("sqlite", steps, { kilobytes, runs }),
        goals: [{ id: "P5", times: "floor", atMost: 2 }],
      },
      isBuilt && {
        name: "waymark, FileStore",
        role: "reference",
        ...microsPerStep("file-store", 300, { kilobytes, runs }),
      },
      {
        name: langgraph,
        role: "peer",
        ...microsPerStep("langgraph-sqlite", 200, { kilobytes, runs, synchronous: "FULL" }),
        goals: [{ id: "P5", times: "ours", atLeast: 30 }],
      },
    ],
  });
}

/** The calls of a SQLite driver block; this is for how long. */
function stall() {
  const kilobytes = 10;
  const row = (file, steps, options = {}) => ({
    sample: () => longestStall(file, steps, { kilobytes, runs, ...options }),
  });
  return compare({
    title: `longest stall of the event loop, ${runs} runs at once, a state of ${kilobytes} KB each`,
    unit: "ms",
    rounds: 5,
    warmUp: 0,
    contenders: [
      { name: shared, role: "floor", ...row("raw-sqlite", 5000) },
      {
        name: ours,
        role: "ours",
        ...row("sqlite", 5000),
        goals: [{ id: "P5", atMost: 20 }],
      },
      { name: langgraph, role: "peer", ...row("langgraph-sqlite", 200, { synchronous: "FULL" }) },
    ],
  });
}

function longestStall(file, steps, options) {
  const script = fileURLToPath(new URL("../lib/stall-process.mjs", import.meta.url));
  const args = [script, file, String(steps), JSON.stringify(options)];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`the stall of ${file} ended with ${status}: ${stderr}`);
  return Number(stdout);
}

async function disk() {
  const { sqliteDisk, langgraphDisk } = await import("../workloads/sqlite-disk.mjs");
  const half = await sqliteDisk(500);
  const { opened, closed, state } = await sqliteDisk(1000);
  const [langgraphHalf, langgraphWhole] = [await langgraphDisk(500), await langgraphDisk(1000)];
  const row = (said, role, value, goals = []) => ({ name: said, role, sample: () => value, goals });
  return compare({
    title: "disk after 1,000 steps of a list that grows to 200 KB",
    unit: "MB",
    rounds: 1,
    warmUp: 0,
    contenders: [
      row("the state", "floor", state),
      row(`${ours}, open`, "ours", opened, [{ id: "P6", atMost: 5 }]),
      row(`${ours}, closed`, "ours", closed, [{ id: "P6", times: "floor", atMost: 3 * keep }]),
      row(`${ours}, open, after 500 steps`, "reference", half.opened),
      row("LangGraph.js SqliteSaver", "peer", langgraphWhole),
      row("LangGraph.js SqliteSaver, after 500 steps", "peer", langgraphHalf),
    ],
  });
}

async function loads() {
  const tables = [];
  for (const opened of [true, false]) {
    const options = { kilobytes: 10, what: "load", opened };
    const raw = opened ? "SELECT and JSON.parse" : "open, SELECT, JSON.parse, close";
    const how = opened ? "" : ", as a new process";
    tables.push(
      await compare({
        title: `load a state of 10 KB and find the next node, after 1,000 steps${how}`,
        unit: "µs",
        rounds: 9,
        contenders: [
          { name: raw, role: "floor", ...microsPerStep("raw-sqlite", 100, options) },
          {
            name: ours,
            role: "ours",
            ...microsPerStep("sqlite", 100, { ...options, saved: 1000 }),
            goals: [{ id: "P9", times: raw, atMost: 3 }],
          },
          opened && {
            name: "LangGraph.js SqliteSaver, after 100 steps",
            role: "peer",
            ...microsPerStep("langgraph-sqlite", 10, { kilobytes: 10, what: "load", saved: 100 }),
          },
        ],
      }),
    );
  }
  return tables;
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
        ...microsPerStep("sqlite", 5, options),
        goals: [{ id: "P14", atMost: 20_000 }],
      },
    ],
  });
}

function page() {
  const options = { kilobytes: 1, what: "runs", saved: 100_000 };
  return compare({
    title: "a page of 50 out of 100,000 runs",
    unit: "µs",
    rounds: 5,
    warmUp: 1,
    contenders: [
      {
        name: ours,
        role: "ours",
        ...microsPerStep("sqlite", 20, { ...options, opened: true }),
        goals: [{ id: "P14", atMost: 10_000 }],
      },
      {
        name: "waymark, SqliteStore, by status",
        role: "reference",
        ...microsPerStep("sqlite", 20, { ...options, opened: true, filter: { status: "pending" } }),
      },
    ],
  });
}
