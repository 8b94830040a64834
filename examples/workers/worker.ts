/** One worker process: takes orders from the queue until it gets SIGTERM, or is killed. */
import { on } from "node:events";
import { PostgresStore } from "waymark/stores/postgres";
import { Worker } from "waymark/worker";
import { orders, type Told } from "./orders.js";

const [url = "", lease = ""] = process.argv.slice(2);

/** Tells something. A node that has begun waits for the answer, which one that is killed never gets. */
async function tell(told: Told): Promise<void> {
  const answers = told.what === "begun" ? on(process, "message") : undefined;
  process.send?.(told);
  if (told.what !== "begun" || answers === undefined) return;
  for await (const [place] of answers) if (place === `${told.order} ${told.node}`) return;
}

const worker = new Worker({
  graphs: [orders(tell)],
  store: new PostgresStore({ client: url }),
  connection: url,
  concurrency: 2,
  lease: Number(lease),
  drainOn: ["SIGTERM"],
});
await worker.ready();
await tell({ what: "ready" });
