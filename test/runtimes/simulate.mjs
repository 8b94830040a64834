// Plays 200 scripts in the simulator, with every kind of fault and storage, and prints a hash of all that happened in them.
import { createHash } from "node:crypto";
import { parallel, StateGraph } from "waymark";
import { simulate } from "waymark/testing";

const graph = ({ effect }) => {
  const charge = effect("charge", (amount) => amount);
  return new StateGraph({ name: "work" })
    .addNode("pay", async (_state, context) => ({ paid: await context.once("c", () => charge(5)) }))
    .addNode(
      "square",
      parallel([1, 2], (_state, n) => n * n, { merge: (_state, squares) => ({ squares }) }),
    )
    .addNode(
      "flaky",
      async (state, context) => {
        if (context.attempt < 2) throw new Error("busy");
        await context.sleep("rest", 2000);
        return state;
      },
      { retry: { maxAttempts: 3, initialInterval: 500 } },
    )
    .addNode("ask", async (_state, { pause }) => ({ answer: await pause("ada", { ask: "Well?" }) }))
    .addEdge("pay", "square")
    .addEdge("square", "flaky")
    .addEdge("flaky", "ask")
    .setEntryPoint("pay")
    .setExitPoint("ask");
};

const kinds = [
  ...["kill", "stop", "cut", "delay", "lose-answer", "double-call"],
  ...["skew", "power-cut", "torn-write", "full-disk", "corrupt", "lost-queue"],
];
const stores = ["database", "file", "shared-file"];

const hash = createHash("sha256");
for (let seed = 1; seed <= 200; seed++) {
  const faults = [0, 1, 2, 3].map((index) => ({
    at: (seed % 7) + index * 12,
    kind: kinds[(seed * (index + 1)) % kinds.length],
    worker: index % 2,
    for: index % 2 === 0 ? 40_000 : 500,
    by: seed % 4,
  }));
  const store = stores[seed % stores.length];
  const queue = seed % 2 === 0;
  const script = { seed, workers: 2, runs: 2, latency: 4, queue, store, faults };
  const { failures, trace } = await simulate({
    ...{ graph, script, answer: () => "yes" },
    data: () => ({ paid: 0, squares: [], answer: "" }),
  });
  hash.update([...trace, ...failures.map(({ message }) => message), ""].join("\n"));
}
console.log(hash.digest("hex"));
