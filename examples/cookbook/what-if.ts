/**
 * What if
 *
 * Fork a finished run at an earlier step with different data, run it to the end, and compare. The original
 * stays as it is.
 */
import { END, MemoryStore, State, StateGraph } from "waymark";

const store = new MemoryStore();
const graph = new StateGraph<{ price: number; discount: number; total: number }>({
  checkpoint: { store, interval: 1, preserve: true },
})
  .addNode("price", () => ({ price: 100 }))
  .addNode("discount", (state) => ({ total: state.data.price * (1 - state.data.discount) }))
  .addEdge("price", "discount")
  .addEdge("discount", END)
  .setEntryPoint("price");

const original = await graph.execute(State.create({ price: 0, discount: 0.1, total: 0 }));
const fork = await graph.fork(original.runId, 1, { discount: 0.5 }); // after "price"
const other = await graph.resume(fork.runId);

console.log(original.data.total, other.data.total); // 90 50
console.log(other.parent?.runId === original.runId, (await store.list()).length); // true 2
