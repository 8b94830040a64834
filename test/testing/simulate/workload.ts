import { parallel, type State, StateGraph } from "waymark";
import type { SimulateOptions } from "waymark/testing";

/** What the workload leaves behind: a run that was not disturbed always ends with the same. */
export interface Work {
  log: string[];
  squares: number[];
  left: number;
  approved: string[];
}

/** A graph that does a little of everything: a loop, effects, `once`, parallel items, retries, a wait, two pauses at once. */
export const workload: SimulateOptions<Work> = {
  graph: ({ effect }) => {
    const charge = effect("charge", (amount: number) => amount);
    const square = effect("square", (n: number) => n * n);
    const log = (state: State<Work>, word: string) => ({ log: [...state.data.log, word] });
    return new StateGraph<Work>({ name: "work" })
      .addNode("count", (state) => ({ ...log(state, "count"), left: state.data.left - 1 }))
      .addNode("pay", async (state, context) => {
        const paid = await context.once("charge", () => charge(5));
        return log(state, `pay ${paid}`);
      })
      .addNode(
        "square",
        parallel([1, 2], (_state, n) => square(n), { merge: (_state, squares) => ({ squares }) }),
      )
      .addNode(
        "flaky",
        async (state, context) => {
          if (context.attempt < 2) throw new Error("busy");
          await context.sleep("rest", 2000);
          return log(state, "flaky");
        },
        { retry: { maxAttempts: 3, initialInterval: 500 } },
      )
      .addNode("ask", async (state, context) => {
        const ask = (name: string) =>
          context.pause(name, { reason: "approval", ask: { title: name } });
        const answers = await Promise.all([ask("ada"), ask("ben")]);
        return { ...log(state, "ask"), approved: answers.map(String) };
      })
      .addEdge("count", "count", (state) => state.data.left > 0)
      .addEdge("count", "pay")
      .addEdge("pay", "square")
      .addEdge("square", "flaky")
      .addEdge("flaky", "ask")
      .setEntryPoint("count")
      .setExitPoint("ask");
  },
  data: () => ({ log: [], squares: [], left: 2, approved: [] }),
  answer: ({ name }) => `${name} agrees`,
  check: ({ data }) => {
    const found = JSON.stringify([data.log, data.squares, data.approved]);
    if (found !== EXPECTED) throw new Error(`the run ended with ${found}`);
  },
};

const EXPECTED = JSON.stringify([
  ["count", "count", "pay 5", "flaky", "ask"],
  [1, 4],
  ["ada agrees", "ben agrees"],
]);
