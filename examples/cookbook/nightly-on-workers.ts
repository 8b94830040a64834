/**
 * A nightly run on workers
 *
 * Schedule a graph with cron on a fleet of workers. The schedule lives in the queue: no process has to stay up
 * for it, and two submitters with the same id create one schedule. The worker serves until it gets SIGTERM.
 *
 * It needs Postgres: the tests run it on a server of their own, with a schedule that is due each second.
 */
import { END, StateGraph } from "waymark";
import { PostgresStore } from "waymark/stores/postgres";
import { Client, Worker } from "waymark/worker";

const connection = process.env.DATABASE_URL ?? "postgres://localhost/app";
const store = new PostgresStore({ client: connection });

const report = new StateGraph<{ region: string; text?: string }>({ name: "report" })
  .addNode("write", (state) => ({ text: `Sales in ${state.data.region}` }), {
    retry: { maxAttempts: 3 },
  })
  .addEdge("write", END)
  .setEntryPoint("write");
report.on("graph.complete", ({ runId }) => console.log(`${runId} is written`));

const client = new Client({ store, connection });
const cron = process.env.REPORT_CRON ?? "0 3 * * *";
const nightly = { id: "nightly", cron, timeZone: "Europe/Berlin" };
await client.schedule(report, { region: "north" }, nightly);
await client.close();

const worker = new Worker({ graphs: [report], store, connection, drainOn: ["SIGTERM"] });
await worker.ready();
