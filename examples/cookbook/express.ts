/**
 * Express
 *
 * Start a run from a request, respond at once with its id, and report its progress.
 */
import express from "express";
import { END, MemoryStore, State, StateGraph } from "waymark";

const graph = new StateGraph<{ topic: string; text: string }>({
  checkpoint: { store: new MemoryStore(), interval: 1, preserve: true }, // in your program: "sqlite:runs.db"
})
  .addNode("write", (state) => ({ text: `All about ${state.data.topic}` }))
  .addEdge("write", END)
  .setEntryPoint("write");

const app = express().use(express.json());

app.post("/runs", async (request, response) => {
  const run = graph.start(State.create({ topic: String(request.body.topic), text: "" }));
  await run.saved; // from here on a crash loses nothing
  response.status(202).json({ runId: run.runId });
});

app.get("/runs/:id", async (request, response) => {
  response.json(await graph.attach(request.params.id).status());
});

const server = app.listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));
const address = server.address();
const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/runs`;
const headers = { "content-type": "application/json" };
const created = await fetch(url, { method: "POST", headers, body: '{"topic":"cairns"}' });
const { runId } = (await created.json()) as { runId: string };
await graph.attach(runId).result();
const status = (await (await fetch(`${url}/${runId}`)).json()) as { state: string };
console.log(created.status, status.state); // 202 completed
server.close();
