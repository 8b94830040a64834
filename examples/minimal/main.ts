/**
 * The smallest useful graph: a draft is written and reviewed until it is long enough.
 *
 * Run it: npx tsx examples/minimal/main.ts
 */
import assert from "node:assert/strict";
import { END, State, StateGraph } from "waymark";

interface Article {
  topic: string;
  text: string;
  score: number;
}

const graph = new StateGraph<Article>({ checkpoint: { interval: 1 } }) // store: "file" keeps it on disk
  .addNode("draft", async (state) =>
    state.set("text", `${state.data.text}More on ${state.data.topic}. `),
  )
  .addNode("review", async (state) => ({ score: state.data.text.length / 60 })) // merged into the State
  .addEdge("draft", "review")
  .addEdge("review", "draft", (state) => state.data.score < 0.8, "too short") // tried in this order
  .addEdge("review", END)
  .setEntryPoint("draft");

const final = await graph.execute(State.create({ topic: "cairns", text: "", score: 0 }));
console.log(final.status, final.step, final.data.score); // completed 6 0.8

console.log(final.data.text);
console.log(graph.toMermaid({ state: final }));
assert.deepEqual(final.visits, { draft: 3, review: 3 });
