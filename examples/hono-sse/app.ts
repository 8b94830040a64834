import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { State } from "waymark";
import { poemGraph } from "./poem.js";

/** Starts runs, and serves what happens in them as server-sent events: to any number of readers, also late ones. */
export function poemApp(): Hono {
  const graph = poemGraph();
  const app = new Hono();

  app.post("/runs", async (c) => {
    const { topic } = await c.req.json<{ topic: string }>();
    const run = graph.start(State.create({ topic, lines: [] }));
    await run.saved;
    return c.json({ runId: run.runId }, 202);
  });

  app.get("/runs/:id/events", (c) =>
    streamSSE(c, async (sse) => {
      const run = graph.attach(c.req.param("id"));
      for await (const event of run.events({ from: "start" })) {
        if (sse.aborted) break; // the reader has left; the run continues
        await sse.writeSSE({ event: event.type, data: JSON.stringify(event.data) });
      }
    }),
  );

  app.get("/runs/:id", async (c) => c.json(await graph.attach(c.req.param("id")).status()));
  return app;
}
