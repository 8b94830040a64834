/**
 * A run that last year's program started is finished by today's, whose data and graph have changed. Its
 * checkpoint is migrated version by version when it is loaded; the stored one does not change. What can't be
 * migrated is rejected; nothing is guessed.
 *
 * Run it: npx tsx examples/schema-migration/main.ts
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MigrationError, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { orders } from "./current.js";
import { oldOrders } from "./old.js";

const root = await mkdtemp(join(tmpdir(), "waymark-migration-"));
const store = new FileStore({ root });

/** Calls what must be refused, and shows how. */
async function refused(what: string, call: () => Promise<unknown>): Promise<void> {
  const error = await call()
    .then(() => undefined)
    .catch((thrown: unknown) => thrown);
  assert.ok(error instanceof MigrationError, what);
  console.log(`  ${what}: ${error.message}`);
}

try {
  console.log("Last year");
  const start = { customer: "Ada King Lovelace", price: 19.99, paid: false };
  const paused = await oldOrders(store).execute(State.create(start, { runId: "order-17" }));
  console.log(`  ${paused.runId}: ${paused.status}, version ${paused.graph?.version}`);
  console.log(`  ${JSON.stringify(paused.data)}`);

  console.log("Today, too new a program");
  const tooNew = orders(store, 3);
  await refused("there is no way to version 3", () => tooNew.resume("order-17"));

  console.log("Today");
  const mismatches: string[] = [];
  const graph = orders(store).on("graph.mismatch", ({ data }) => mismatches.push(data.actual));
  const paidAt = new Date("2030-01-31T12:00:00Z");
  const final = await graph.resume("order-17", { input: { paidAt } });
  console.log(`  ${final.runId}: ${final.status}, version ${final.graph?.version}`);

  console.log("Its history");
  const versions: (number | undefined)[] = [];
  for (const { checkpointId, sequence, reason } of await store.history("order-17")) {
    const { graph } = await store.load("order-17", { checkpointId });
    versions.push(graph?.version);
    console.log(`  ${sequence}  version ${graph?.version}  ${reason}`);
  }

  console.log("And back");
  await refused("last year's program", () => oldOrders(store).resume("order-17"));

  assert.deepEqual(final.data, { first: "Ada", last: "King Lovelace", cents: 1999n, paidAt });
  assert.deepEqual(final.visits, { accept: 1, thank: 1, send: 1 });
  assert.equal(mismatches.length, 1, "a changed graph is reported once");
  assert.ok(versions[0] === 2 && versions.at(-1) === 0, "no checkpoint was rewritten");
} finally {
  await rm(root, { recursive: true, force: true });
}
