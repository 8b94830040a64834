/**
 * Fastify
 *
 * Answer a pause over HTTP. Invalid input gets a 400 with the paths that are wrong; a run that somebody else is
 * working on gets a 409.
 */
import fastify from "fastify";
import { END, isWaymarkError, MemoryStore, State, StateGraph } from "waymark";
import { z } from "zod";

const graph = new StateGraph<{ stars: number }>({
  checkpoint: { store: new MemoryStore(), interval: 1 },
})
  .addNode("rate", async (_state, context) => {
    const stars = await context.pause("stars", { reason: "a rating", schema: z.number().max(5) });
    return { stars };
  })
  .addEdge("rate", END)
  .setEntryPoint("rate");

const app = fastify();

app.setErrorHandler((error, _request, reply) => {
  if (isWaymarkError(error, "SCHEMA")) return reply.code(400).send({ issues: error.issues });
  if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return reply.code(404).send({});
  return reply.code(isWaymarkError(error, "CHECKPOINT_CONFLICT") ? 409 : 500).send({});
});

app.post<{ Params: { id: string } }>("/runs/:id/answer", async (request) => {
  const { status, data } = await graph.resume(request.params.id, { input: request.body });
  return { status, stars: data.stars };
});

await graph.execute(State.create({ stars: 0 }, { runId: "r" }));
const post = (id: string, stars: number) =>
  app.inject({
    method: "POST",
    url: `/runs/${id}/answer`,
    payload: String(stars),
    headers: { "content-type": "application/json" },
  });
console.log((await post("r", 6)).statusCode, (await post("nobody", 5)).statusCode); // 400 404
console.log((await post("r", 5)).body); // {"status":"completed","stars":5}
await app.close();
