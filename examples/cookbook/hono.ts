/**
 * Hono
 *
 * Server-sent events for any number of readers: a late one gets everything so far, and one that leaves does not
 * stop the run.
 */
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { END, State, StateGraph } from "waymark";

const graph = new StateGraph<{ n: number }>({ checkpoint: { interval: 1 } })
  .addNode("count", (state) => ({ n: state.data.n + 1 }))
  .addEdge("count", "count", (state) => state.data.n < 3)
  .addEdge("count", END)
  .setEntryPoint("count");

const app = new Hono();

app.get("/runs/:id/events", (c) =>
  streamSSE(c, async (stream) => {
    const run = graph.attach(c.req.param("id"));
    for await (const { type, data } of run.events({ from: "start" })) {
      if (stream.aborted) break;
      await stream.writeSSE({ event: type, data: JSON.stringify(data) });
    }
  }),
);

const run = graph.start(State.create({ n: 0 }));
const events = await (await app.request(`/runs/${run.runId}/events`)).text();
console.log(events.match(/^event: node\.complete$/gm)?.length); // 3
