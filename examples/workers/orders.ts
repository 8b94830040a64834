import { setTimeout as wait } from "node:timers/promises";
import { StateGraph } from "waymark";

export interface Order {
  readonly item: string;
  readonly receipt: string;
  readonly parcel: string;
}

/** What a worker reports to the others about an order. */
export type WorkerMessage =
  | { readonly what: "ready" }
  /** A node has begun; a charge carries the key that makes it happen once. */
  | { readonly what: "begun"; readonly order: string; readonly node: string; readonly key: string }
  /** A node's result was saved. */
  | { readonly what: "saved"; readonly order: string; readonly node: string };

/** What becomes of an order; `send` is the world outside, which a node has effects on and waits for. */
export function orders(send: (message: WorkerMessage) => Promise<void>) {
  const step = async (order: string, node: string, key: string): Promise<void> => {
    await send({ what: "begun", order, node, key });
    await wait(100); // stands for what it really does
  };
  return new StateGraph<Order>({ name: "orders" })
    .addNode("reserve", async (state, { runId, node, idempotencyKey }) => {
      await step(runId, node, idempotencyKey);
      return state;
    })
    .addNode("charge", async (_state, { runId, node, idempotencyKey }) => {
      await step(runId, node, idempotencyKey);
      return { receipt: `receipt of ${idempotencyKey}` };
    })
    .addNode("ship", async (state, { runId, node, idempotencyKey }) => {
      await step(runId, node, idempotencyKey);
      return { parcel: `parcel with ${state.data.item}` };
    })
    .addEdge("reserve", "charge")
    .addEdge("charge", "ship")
    .setEntryPoint("reserve")
    .setExitPoint("ship")
    .on("checkpoint.save", ({ runId, data }) => {
      if (data.node !== "") void send({ what: "saved", order: runId, node: data.node });
    });
}
