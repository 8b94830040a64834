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

/**
 * The graph. Each process builds its own; all they share is the folder.
 *
 * @param endless - a node that takes so long that its process can be killed in time.
 */
export function articleGraph(root: string, endless = "") {
  /** Stands for work that takes its time. */
  const work: NodeFunction<Article> = async (state, { node }) => {
    await wait(node === endless ? 60_000 : 250);
    return { parts: [...state.data.parts, `${node} of ${state.data.topic}`] };
  };
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
