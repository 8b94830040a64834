import { microsPerStep } from "../lib/contender.mjs";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";

export const name = "pglite";
export const title = "Checkpoints in PGlite, which never syncs";

export async function run() {
  if (!isBuilt) return [];
  const tables = [];
  for (const kilobytes of [1, 10, 100]) tables.push(await alone(kilobytes));
  return tables;
}

function alone(kilobytes) {
  const steps = 200;
  return compare({
    title: `one run, a state of ${kilobytes} KB, one message replaced per step (${steps} steps)`,
    unit: "µs/step",
    rounds: 5,
    warmUp: 1,
    contenders: [
      {
        name: "INSERT of the change",
        role: "floor",
        ...microsPerStep("pglite", steps, { kilobytes, raw: true }),
      },
      {
        name: "waymark, PostgresStore",
        role: "ours",
        ...microsPerStep("pglite", steps, { kilobytes }),
      },
    ],
  });
}
