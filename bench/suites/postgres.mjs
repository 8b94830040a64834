import { microsPerStep } from "../lib/contender.mjs";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";
import { startPostgres } from "../servers/postgres.mjs";
import { postgresBounds } from "../workloads/postgres-bounds.mjs";

export const name = "postgres";
export const title = "P7, P9, P14: checkpoints in Postgres";

const fenced = "one statement that is fence and write";
const floor = "INSERT of the change, prepared";
const ours = "waymark, PostgresStore";
const langgraph = "LangGraph.js PostgresSaver";
const dbos = "DBOS, a step each";

export async function run() {
  const { url, stop } = await startPostgres();
  try {
    const tables = [];
    for (const kilobytes of [1, 10, 100]) tables.push(await alone(url, kilobytes));
    for (const kilobytes of [1, 10, 100]) tables.push(await together(url, kilobytes));
    if (isBuilt) {
      tables.push(await load(url), await history(url), await page(url), ...(await bounds(url)));
    }
    return tables;
  } finally {
    await stop();
  }
}

/** Of so many steps that what a run costs besides, its claim and its first whole checkpoint, is a small part of it. */
function alone(url, kilobytes) {
  const steps = 400;
  const few = kilobytes < 100 ? 50 : 20;
  return compare({
    title: `one run, a state of ${kilobytes} KB, one message replaced per step (${steps} steps)`,
    unit: "µs/step",
    rounds: 5,
    warmUp: 1,
    contenders: [
      {
        name: fenced,
        role: "floor",
        ...microsPerStep("raw-postgres", steps, { url, kilobytes, fenced: true }),
      },
      {
        name: floor,
        role: "reference",
        ...microsPerStep("raw-postgres", steps, { url, kilobytes }),
      },
      {
        name: "INSERT of all of it, prepared",
        role: "reference",
        ...microsPerStep("raw-postgres", few, { url, kilobytes, whole: true }),
      },
      isBuilt && {
        name: ours,
        role: "ours",
        ...microsPerStep("postgres", steps, { url, kilobytes }),
        goals: [{ id: "P7", times: "floor", atMost: 1.3 }],
      },
      ...peers(url, { kilobytes }, few),
    ],
  });
}

function together(url, kilobytes) {
  const runs = 100;
  const steps = 10_000;
  return compare({
    title: `${runs} runs at once, a state of ${kilobytes} KB each (${steps} steps together)`,
    unit: "µs/step",
    rounds: 3,
    warmUp: 1,
    contenders: [
      {
        name: floor,
        role: "floor",
        ...microsPerStep("raw-postgres", steps, { url, kilobytes, runs }),
      },
      isBuilt && {
        name: ours,
        role: "ours",
        ...microsPerStep("postgres", steps, { url, kilobytes, runs }),
        goals: [{ id: "P7", times: "floor", atMost: 1.3 }],
      },
      ...peers(url, { kilobytes, runs }, kilobytes < 100 ? 500 : 200),
    ],
  });
}

function peers(url, options, steps) {
  return [
    {
      name: langgraph,
      role: "peer",
      ...microsPerStep("langgraph-postgres", steps, { url, ...options }),
      goals: [{ id: "P7", times: "ours", atLeast: 5 }],
    },
    {
      name: dbos,
      role: "peer",
      ...microsPerStep("dbos", steps, { url, ...options }),
      goals: [{ id: "P7", times: "ours", atLeast: 4 }],
    },
  ];
}

function load(url) {
  const options = { url, kilobytes: 10, what: "load", saved: 1000 };
  const raw = "SELECT and JSON.parse";
  return compare({
    title: "load a state of 10 KB and find the next node, after 1,000 steps",
    unit: "µs",
    rounds: 3,
    warmUp: 1,
    contenders: [
      { name: raw, role: "floor", ...microsPerStep("raw-postgres", 50, options) },
      {
        name: ours,
        role: "ours",
        ...microsPerStep("postgres", 50, options),
        goals: [{ id: "P9", times: raw, atMost: 3 }],
      },
    ],
  });
}

function history(url) {
  const options = { url, kilobytes: 100, what: "history", saved: 998, keep: 1000 };
  return compare({
    title: "history of 1,000 kept steps at 100 KB",
    unit: "µs",
    rounds: 3,
    warmUp: 1,
    contenders: [
      {
        name: ours,
        role: "ours",
        ...microsPerStep("postgres", 5, options),
        goals: [{ id: "P14", atMost: 20_000 }],
      },
    ],
  });
}

function page(url) {
  const options = { url, kilobytes: 1, what: "runs", saved: 100_000 };
  return compare({
    title: "a page of 50 out of 100,000 runs",
    unit: "µs",
    rounds: 3,
    warmUp: 1,
    contenders: [
      {
        name: ours,
        role: "ours",
        ...microsPerStep("postgres", 20, options),
        goals: [{ id: "P14", atMost: 10_000 }],
      },
    ],
  });
}

async function bounds(url) {
  const { p95, kilobytes, resume } = await postgresBounds(url);
  const table = (titled, unit, value, atMost) =>
    compare({
      title: titled,
      unit,
      rounds: 1,
      warmUp: 0,
      contenders: [
        { name: ours, role: "ours", sample: () => value, goals: [{ id: "bound", atMost }] },
      ],
    });
  return [
    await table("a save while 1,000 runs are under way, 95th percentile", "ms", p95, 50),
    await table("a checkpoint of a state of 10 KB, 95th percentile", "KB", kilobytes, 100),
    await table("a resume", "ms", resume, 100),
  ];
}
