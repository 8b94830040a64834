/**
 * A Lambda handler
 *
 * A function that runs out of time is a process that dies: stop the run a moment earlier, and let the next
 * invocation resume it. Use a store that outlives the function: Postgres or Redis.
 */
import { END, isWaymarkError, MemoryStore, State, StateGraph } from "waymark";

const store = new MemoryStore(); // in your function: new PostgresStore({ client: process.env.DATABASE_URL })
const graph = new StateGraph<{ n: number }>({ checkpoint: { store, interval: 1, preserve: true } })
  .addNode("count", async (state) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    return { n: state.data.n + 1 };
  })
  .addEdge("count", "count", (state) => state.data.n < 20)
  .addEdge("count", END)
  .setEntryPoint("count");

interface Context {
  getRemainingTimeInMillis(): number;
}

export async function handler(
  event: { runId: string },
  context: Context,
): Promise<{ status: string }> {
  const signal = AbortSignal.timeout(Math.max(context.getRemainingTimeInMillis() - 10, 1));
  try {
    const state = State.create({ n: 0 }, { runId: event.runId });
    const { status } = await graph.resumeOrStart(state, { signal });
    return { status };
  } catch (error) {
    if (isWaymarkError(error, "ABORTED")) return { status: "in_progress" }; // the queue sends the event again
    throw error;
  }
}

let invocations = 0;
let status = "";
while (status !== "completed") {
  invocations++;
  ({ status } = await handler({ runId: "night" }, { getRemainingTimeInMillis: () => 45 }));
}
const { data, visits } = await store.load<{ n: number }>("night");
console.log(data.n, visits.count, invocations > 1); // 20 20 true
