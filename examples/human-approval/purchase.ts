import { type CheckpointStore, pause, type StandardSchema, StateGraph } from "waymark";

/** What a request to buy something knows. */
export interface Purchase {
  readonly eur: number;
  readonly checked: boolean;
  readonly approval: string;
  readonly order: string;
}

/** What an answer may be. With zod it is z.enum(["yes", "no"]): any Standard Schema will do. */
const yesOrNo: StandardSchema = {
  "~standard": {
    version: 1,
    vendor: "example",
    validate: (value) =>
      value === "yes" || value === "no"
        ? { value }
        : { issues: [{ message: "must be yes or no" }] },
  },
};

/** What is cheap is ordered; for the rest somebody is asked. */
export function purchaseGraph(store: CheckpointStore) {
  return new StateGraph<Purchase>({
    name: "purchase",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("check", (state) => {
      if (!(state.data.eur > 0)) throw new Error(`${state.data.eur} is not an amount`);
      return { checked: true };
    })
    .addNode(
      "ask",
      // The node is done with this: the answer becomes data.approval, and the run continues after it.
      (state) =>
        pause(state, {
          reason: "needs an approval",
          ask: `Buy for ${state.data.eur} EUR?`,
          into: "approval",
        }),
      { input: yesOrNo },
    )
    .addNode("order", (state, { idempotencyKey }) => {
      // The same key after a crash: a shop that gets it twice sends one parcel.
      return { order: `ordered for ${state.data.eur} EUR with the key ${idempotencyKey}` };
    })
    .addNode("decline", () => ({ order: "not ordered" }))
    .addEdge("check", "order", (state) => state.data.eur < 100, "cheap")
    .addEdge("check", "ask")
    .addEdge("ask", "order", (state) => state.data.approval === "yes", "approved")
    .addEdge("ask", "decline")
    .setEntryPoint("check")
    .setExitPoint("order")
    .setExitPoint("decline");
}
