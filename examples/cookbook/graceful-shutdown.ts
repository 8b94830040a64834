/**
 * Shut down gracefully
 *
 * On SIGTERM, let running nodes finish, save their results, and start no others. The next process picks the
 * runs up.
 */
import { END, isWaymarkError, MemoryStore, recoverRuns, State, StateGraph } from "waymark";

const store = new MemoryStore(); // in your program: one that outlives the process
const build = () =>
  new StateGraph<{ n: number }>({
    name: "count",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("count", (state) => ({ n: state.data.n + 1 }))
    .addEdge("count", "count", (state) => state.data.n < 5)
    .addEdge("count", END)
    .setEntryPoint("count");

const graph = build();
// In your program: process.once("SIGTERM", () => graph.drain().then(() => process.exit(0)));
graph.on("node.complete", ({ data }) => {
  if (data.step === 2) void graph.drain();
});
await graph.execute(State.create({ n: 0 }, { runId: "monday" })).catch((error: unknown) => {
  console.log(isWaymarkError(error, "ABORTED")); // true
});

const [recovered] = await recoverRuns({ store, graphs: [build()] }); // at startup
const { data } = await store.load<{ n: number }>("monday");
console.log(recovered?.runId, recovered?.outcome, data.n); // monday completed 5
