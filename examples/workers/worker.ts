/** One worker process: takes orders from the queue until it gets SIGTERM, or is killed. */
import { on } from "node:events";
import { PostgresStore } from "waymark/stores/postgres";
import { Worker } from "waymark/worker";
import { orders, type WorkerMessage } from "./orders.js";

const [url = "", lease = ""] = process.argv.slice(2);

/** Sends a message. A node that has begun waits for the answer, which one that is killed never gets. */
async function send(message: WorkerMessage): Promise<void> {
  const answers = message.what === "begun" ? on(process, "message") : undefined;
  process.send?.(message);
  if (message.what !== "begun" || answers === undefined) return;
  for await (const [place] of answers) if (place === `${message.order} ${message.node}`) return;
}

const worker = new Worker({
  graphs: [orders(send)],
  store: new PostgresStore({ client: url }),
  connection: url,
  concurrency: 2,
  lease: Number(lease),
  drainOn: ["SIGTERM"],
});
await worker.ready();
await send({ what: "ready" });
