// What an author writes, for the compilers that the package supports.
import { END, MemoryStore, State, StateGraph } from "waymark";
import { FileStore } from "waymark/stores/file";
import { SqliteStore } from "waymark/stores/sqlite";

interface Article {
  topic: string;
  notes: string[];
  score: number;
}

const graph = new StateGraph<Article>({ checkpoint: { store: new MemoryStore(), interval: 1 } })
  .addNode("draft", async (state) => state.set("notes", [...state.data.notes, state.data.topic]))
  .addNode("review", (state) => ({ score: state.data.notes.length }))
  .addEdge("draft", "review")
  .addEdge("review", "draft", (state) => state.data.score < 2)
  .addEdge("review", END)
  .setEntryPoint("draft");

export const final: Promise<State<Article>> = graph.execute(
  State.create({ topic: "cairns", notes: [], score: 0 }),
);
export const stores = [new FileStore(), new SqliteStore()];
// @ts-expect-error: no such node
graph.addEdge("reviw", END);
