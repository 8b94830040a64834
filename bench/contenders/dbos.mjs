import { DBOS } from "@dbos-inc/dbos-sdk";
import { conversation, replaceOne } from "../workloads/messages.mjs";

// What measures has no more to ask.
process.on("disconnect", () => process.exit());

const cycle = DBOS.registerWorkflow(
  async (steps, kilobytes) => {
    let state = conversation(kilobytes);
    for (let step = 0; step < steps; step++) {
      const before = state;
      state = await DBOS.runStep(async () => replaceOne(before), { name: "tick" });
    }
    return state.n;
  },
  { name: "cycle" },
);

let isLaunched = false;

export async function prepare({ url }) {
  if (isLaunched) return;
  isLaunched = true;
  DBOS.setConfig({
    name: `bench-${process.pid}`,
    systemDatabaseUrl: url,
    systemDatabasePoolSize: 10,
    systemDatabaseSchemaName: `dbos_${process.pid}`,
    logLevel: "error",
  });
  await DBOS.launch();
}

/**
 * A workflow of DBOS whose steps each return the state, which it keeps.
 * @param {number} steps of all runs together
 * @param {object} options as of raw-postgres.mjs
 */
export async function run(steps, { kilobytes, runs = 1 }) {
  const all = Array.from({ length: runs }, () => cycle(steps / runs, kilobytes));
  return (await Promise.all(all)).reduce((sum, n) => sum + n, 0);
}
