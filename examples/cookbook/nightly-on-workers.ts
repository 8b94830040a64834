/**
 * A nightly run on workers
 *
 * Schedule a graph by cron on a fleet. The schedule is the queue's: no process has to stay for it, and two submitters with the same
 * id make one schedule.
 *
 * Needs a Postgres, so it is compiled and not run.
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
