/**
 * Sentry
 *
 * Report the very error that a node threw, with its stack and the run it belongs to.
 */
import { END, MemoryStore, State, StateGraph } from "waymark";

// In your program: import * as Sentry from "@sentry/node";
const Sentry = {
  captureException: (error: unknown, { tags }: { tags: Record<string, string> }) =>
    console.log(error instanceof RangeError, tags.node, tags.runId), // true charge order-17
};

const graph = new StateGraph<{ total: number }>({
  name: "order",
  checkpoint: { store: new MemoryStore(), interval: 1 },
})
  .addNode("charge", () => {
    throw new RangeError("the card was declined");
  })
  .addEdge("charge", END)
  .setEntryPoint("charge");

graph.on("graph.fail", ({ source, runId, data }) => {
  Sentry.captureException(data.cause, { tags: { graph: source, node: data.node, runId } });
});

await graph.execute(State.create({ total: 40 }, { runId: "order-17" })).catch(() => {});
