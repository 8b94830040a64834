/**
 * Map-reduce with a budget
 *
 * Work on many documents at once, and stop when the budget is spent. Results that were paid for stay saved, so
 * a resume with a larger budget pays only for the rest.
 */
import { END, MemoryStore, parallel, State, StateGraph } from "waymark";

interface Job {
  documents: string[];
  words: number;
}

let budget = 2; // US dollars
let spent = 0;
const graph = new StateGraph<Job>({ checkpoint: { store: new MemoryStore(), interval: 1 } })
  .addNode(
    "map",
    parallel(
      (state) => state.data.documents,
      async (_state, document) => {
        if (spent >= budget) throw new Error(`the budget of ${budget} USD is spent`);
        spent += 1; // what the model's answer says it cost
        return document.split(" ").length;
      },
      { concurrency: 2, merge: (_state, counts) => ({ words: counts.reduce((a, b) => a + b, 0) }) },
    ),
  )
  .addEdge("map", END)
  .setEntryPoint("map");

const documents = ["one two", "three", "four five six", "seven"];
const first = State.create({ documents, words: 0 }, { runId: "books" });
await graph.execute(first).catch(() => console.log("stopped after", spent)); // stopped after 2

budget = 10;
const { data } = await graph.resume("books");
console.log(data.words, "words for", spent, "USD"); // 7 words for 4 USD
