import { microsPerStep } from "../contender.mjs";
import { compare } from "../measure.mjs";
import { postgresBounds } from "../postgres-bounds.mjs";
import { startPostgres } from "../postgres-server.mjs";
import { isBuilt } from "../waymark.mjs";

export const name = "postgres";
export const title = "P7, P14: checkpoints in Postgres";

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
    if (isBuilt) tables.push(await load(url), await history(url), ...(await bounds(url)));
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
      { name: floor, role: "floor", ...microsPerStep("raw-postgres", steps, { url, kilobytes }) },
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
  return compare({
    title: "load a state of 10 KB and find the next node, after 1,000 steps",
    unit: "µs",
    rounds: 3,
    warmUp: 1,
    contenders: [{ name: ours, role: "ours", ...microsPerStep("postgres", 50, options) }],
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
    await table("a save while 1,000 runs go on, 95 of 100 are faster", "ms", p95, 50),
    await table("a checkpoint of a state of 10 KB, 95 of 100 are smaller", "KB", kilobytes, 100),
    await table("to go on with a run", "ms", resume, 100),
  ];
}
