/** One worker process: takes orders from the queue until it gets SIGTERM, or is killed. */
import { PostgresStore } from "waymark/stores/postgres";
import { Worker } from "waymark/worker";
import { orders, type Told } from "./orders.js";

const [url = "", lease = ""] = process.argv.slice(2);
const tell = (told: Told): void => void process.send?.(told);

const worker = new Worker({
  graphs: [orders(tell)],
  store: new PostgresStore({ client: url }),
  connection: url,
  concurrency: 2,
  lease: Number(lease),
  drainOn: ["SIGTERM"],
});
await worker.ready();
tell({ what: "ready" });
