import { type CheckpointStore, type Observer, parallel, StateGraph } from "waymark";
import { type Page, read, search } from "./library.js";
import { type Review, review, write } from "./model.js";

/** What the agent knows. */
export interface Research {
  readonly topic: string;
  readonly query: string;
  readonly found: readonly string[];
  readonly pages: readonly Page[];
  readonly text: string;
  readonly review: Review;
}

const GOOD_ENOUGH = 0.9;

/** Search, read, write, review, and again with what the review missed. */
export function researchAgent(store: CheckpointStore, observer: Observer) {
  return new StateGraph<Research>({
    name: "research",
    observer,
    maxIterations: 40, // so that an agent which is never content stops
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("search", (state, context) => {
      const { query, pages } = state.data;
      const known = new Set(pages.map((page) => page.url));
      const found = search(query).filter((url) => !known.has(url));
      context.progress({ title: `Searched for "${query}"`, summary: `New pages: ${found.length}` });
      return { found };
    })
    .addNode(
      "read",
      // Pages that were read stay read when one of the others fails and the node is tried again.
      parallel<Research, string, Page>(
        (state) => state.data.found,
        (_state, url) => read(url),
        { concurrency: 2, merge: (state, read) => ({ pages: [...state.data.pages, ...read] }) },
      ),
      { retry: { maxAttempts: 3, initialInterval: 5 } },
    )
    .addNode(
      "write",
      async (state, context) => {
        const { topic, pages } = state.data;
        // Paid for once, though what comes after it fails and the node is tried again.
        const draft = await context.once("draft", () => write(topic, pages));
        if (context.attempt === 1) throw new Error("the network went away after the answer");
        context.ledger.usage(draft.usage);
        return { text: draft.value };
      },
      { retry: { maxAttempts: 2, initialInterval: 5 } },
    )
    .addNode("review", async (state, context) => {
      const { value, usage } = await review(state.data.text);
      const isGood = value.score >= GOOD_ENOUGH;
      context.ledger.usage(usage);
      context.ledger.agent("reviewer", { type: "reviewer", confidence: value.score });
      context.ledger.decision({
        description: isGood ? "publish" : `search for "${value.missing}"`,
        rationale: `the score is ${value.score.toFixed(2)}, ${GOOD_ENOUGH} is wanted`,
        confidence: value.score,
        alternatives: [isGood ? "search again" : "publish"],
      });
      return { review: value, query: `cairns ${value.missing}`.trim() };
    })
    .addNode("publish", (state, context) => {
      const sources = state.data.pages.map((page) => page.url);
      context.progress({ title: "Published", summary: state.data.text, sources });
      context.ledger.output("article", { characters: state.data.text.length });
      return state;
    })
    .addEdge("search", "read")
    .addEdge("read", "write")
    .addEdge("write", "review")
    .addEdge("review", "search", (state) => state.data.review.score < GOOD_ENOUGH, "gap")
    .addEdge("review", "publish")
    .setEntryPoint("search")
    .setExitPoint("publish");
}
