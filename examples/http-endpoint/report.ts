import { setTimeout as wait } from "node:timers/promises";
import { type CheckpointStore, pause, type StandardSchema, StateGraph } from "waymark";

/** What a run knows. */
export interface Report {
  readonly topic: string;
  readonly chapters: readonly string[];
  readonly approved: boolean;
}

/** How many chapters a report has. */
export const CHAPTERS = 12;

/** What an answer must be. A schema of zod or valibot will do as well. */
const approval: StandardSchema = {
  "~standard": {
    version: 1,
    vendor: "example",
    validate: (value) =>
      typeof (value as Partial<Report> | null)?.approved === "boolean"
        ? { value: { approved: (value as Report).approved } }
        : { issues: [{ message: 'must be { "approved": true } or false' }] },
  },
};

/** A report is written chapter by chapter; then a person is asked. */
export function reportGraph(store: CheckpointStore) {
  return new StateGraph<Report>({
    name: "report",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("write", async (state) => {
      await wait(25); // stands for work
      const { topic, chapters } = state.data;
      return { chapters: [...chapters, `${topic}, chapter ${chapters.length + 1}`] };
    })
    .addNode("ask", (state) => pause(state, { reason: "review", ask: "Publish it?" }), {
      input: approval,
    })
    .addNode("publish", (state) => state)
    .addEdge("write", "write", (state) => state.data.chapters.length < CHAPTERS, "more")
    .addEdge("write", "ask")
    .addEdge("ask", "publish")
    .setEntryPoint("write")
    .setExitPoint("publish");
}
