import { setTimeout as wait } from "node:timers/promises";
import { type NodeFunction, StateGraph } from "waymark";
import { FileStore } from "waymark/stores/file";

/** What the run knows. */
export interface Article {
  readonly topic: string;
  readonly parts: readonly string[];
}

/** The nodes, in the order they run. */
export const nodes = ["research", "outline", "draft", "review", "illustrate", "publish"] as const;

/** The node in the middle of which the first process is killed. */
export const killedIn = "review";

/** Stands for work that takes its time. */
const work: NodeFunction<Article> = async (state, { node }) => {
  await wait(250);
  return { parts: [...state.data.parts, `${node} of ${state.data.topic}`] };
};

/** The graph. Each process builds its own; all they share is the folder. */
export function articleGraph(root: string) {
  return new StateGraph<Article>({
    name: "article",
    checkpoint: { store: new FileStore({ root, keep: 10 }), interval: 1, preserve: true },
  })
    .addNode("research", work)
    .addNode("outline", work)
    .addNode("draft", work)
    .addNode("review", work)
    .addNode("illustrate", work)
    .addNode("publish", work)
    .addEdge("research", "outline")
    .addEdge("outline", "draft")
    .addEdge("draft", "review")
    .addEdge("review", "illustrate")
    .addEdge("illustrate", "publish")
    .setEntryPoint("research")
    .setExitPoint("publish");
}
