import { setTimeout as wait } from "node:timers/promises";
import { END, MemoryStore, StateGraph } from "waymark";

declare module "waymark" {
  interface EventMap {
    /** A word from the model. */
    "poem.word": { readonly node: string; readonly word: string };
  }
}

/** What a run knows. */
export interface Poem {
  readonly topic: string;
  readonly lines: readonly string[];
}

/** Writes a poem, word by word. */
export function poemGraph() {
  return new StateGraph<Poem>({
    name: "poem",
    checkpoint: { store: new MemoryStore(), interval: 1, preserve: true },
  })
    .addNode("write", async (state, ctx) => {
      const { topic, lines } = state.data;
      const words = [topic, "above", "the", lines.length === 0 ? "snow" : "wind"];
      for (const word of words) {
        await wait(5); // stands for a model
        ctx.emit("poem.word", { node: ctx.node, word });
      }
      return { lines: [...lines, words.join(" ")] };
    })
    .addEdge("write", "write", (state) => state.data.lines.length < 2, "another line")
    .addEdge("write", END)
    .setEntryPoint("write");
}
