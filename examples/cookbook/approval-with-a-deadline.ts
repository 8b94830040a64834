/**
 * An approval with a deadline
 *
 * Ask a person, wait for a day with no process running, and let the program decide if nobody answers.
 */
import { END, MemoryStore, PauseTimeoutError, State, StateGraph } from "waymark";
import { useFakeClock } from "waymark/testing";
import { z } from "zod";

const DAY = 24 * 60 * 60 * 1000;

const graph = new StateGraph<{ refund: number; decidedBy: string }>({
  checkpoint: { store: new MemoryStore(), interval: 1 },
})
  .addNode("approve", async (state, context) => {
    const question = { reason: "refunds need an approval", ask: state.data.refund };
    try {
      await context.pause("approval", { ...question, schema: z.literal("yes"), timeout: DAY });
      return { decidedBy: "a person" };
    } catch (error) {
      if (!(error instanceof PauseTimeoutError)) throw error;
      return { refund: 0, decidedBy: "the deadline" };
    }
  })
  .addEdge("approve", END)
  .setEntryPoint("approve");

const clock = useFakeClock(); // in your program: the real one
const paused = await graph.execute(State.create({ refund: 40, decidedBy: "" }));
console.log(paused.status, paused.pauses[0]?.ask); // paused 40

await clock.advance(2 * DAY);
const { data } = await graph.resume(paused.runId); // from a cron job, or by a worker
console.log(data.refund, data.decidedBy); // 0 the deadline
clock.restore();
