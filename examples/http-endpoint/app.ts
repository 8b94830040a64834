import { type Context, Hono } from "hono";
import { isWaymarkError, State } from "waymark";
import type { FileStore } from "waymark/stores/file";
import { Background } from "./background.js";
import { type Report, reportGraph } from "./report.js";

/** The endpoint. All that lasts is in the store, so a server that is restarted knows all runs. */
export function reportApp(store: FileStore): Hono {
  const graph = reportGraph(store);
  const background = new Background(graph);
  const app = new Hono();

  /** What a client sees of a run. */
  const show = async (context: Context, runId: string, code: 200 | 202 = 200) => {
    const state = await store.load<Report>(runId);
    const { status, step, pauses, data } = state;
    const waitsFor = pauses.map(({ reason, ask }) => ({ reason, ask }));
    const isRunning = background.has(runId);
    return context.json({ runId, status, isRunning, step, waitsFor, data }, code);
  };

  app.post("/runs", async (context) => {
    const { topic } = await context.req.json<{ topic?: unknown }>();
    if (typeof topic !== "string") return context.json({ error: "topic must be a string" }, 400);
    const state = State.create<Report>({ topic, chapters: [], approved: false });
    await background.begin(state.runId, (signal) => graph.execute(state, { signal }));
    return show(context, state.runId, 202);
  });

  app.get("/runs", async (context) => context.json(await store.runs()));

  app.get("/runs/:id", (context) => show(context, context.req.param("id")));

  app.get("/runs/:id/history", async (context) =>
    context.json(await graph.history(context.req.param("id"))),
  );

  app.get("/runs/:id/diagram", async (context) => {
    const state = await store.load<Report>(context.req.param("id"));
    return context.text(graph.toMermaid({ state }));
  });

  app.post("/runs/:id/pause", async (context) => {
    const runId = context.req.param("id");
    if (!(await background.stop(runId))) return context.json({ error: "it is not running" }, 409);
    return show(context, runId);
  });

  app.post("/runs/:id/resume", async (context) => {
    const runId = context.req.param("id");
    const { input } = await context.req.json<{ input?: unknown }>();
    if (background.has(runId)) return context.json({ error: "it is running" }, 409);
    await background.begin(runId, (signal) => graph.resume(runId, { signal, input }));
    return show(context, runId, 202);
  });

  app.onError((error, context) => {
    const isRefused = isWaymarkError(error, "CONFIG") || isWaymarkError(error, "SCHEMA");
    const isBad = isRefused || error instanceof SyntaxError;
    const isMissing = isWaymarkError(error, "CHECKPOINT_NOT_FOUND");
    const isTaken = isWaymarkError(error, "CHECKPOINT_CONFLICT");
    const code = isBad ? 400 : isMissing ? 404 : isTaken ? 409 : 500;
    return context.json({ error: code === 500 ? "internal error" : error.message }, code);
  });

  return app;
}
