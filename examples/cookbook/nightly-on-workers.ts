/**
 * A nightly run on workers
 *
 * Schedule a graph with cron on a fleet of workers. The schedule lives in the queue: no process has to stay up
 * for it, and two submitters with the same id create one schedule.
 *
 * It needs Postgres, so it is compiled and not run.
 */
import { END, StateGraph } from "waymark";
import { PostgresStore } from "waymark/stores/postgres";
import { Client, Worker } from "waymark/worker";

const connection = "postgres://localhost/app";
const store = new PostgresStore({ client: connection });

const report = new StateGraph<{ region: string; text?: string }>({ name: "report" })
  .addNode("write", (state) => ({ text: `Sales in ${state.data.region}` }), {
    retry: { maxAttempts: 3 },
  })
  .addEdge("write", END)
  .setEntryPoint("write");

const client = new Client({ store, connection });
const nightly = { id: "nightly", cron: "0 3 * * *", timeZone: "Europe/Berlin" };
await client.schedule("report", { region: "north" }, nightly);

const worker = new Worker({ graphs: [report], store, connection, drainOn: ["SIGTERM"] });
await worker.ready();
