import { type CheckpointStore, pause, StateGraph } from "waymark";

/** An order as last year's program kept it: version 0. */
export interface OrderV0 {
  readonly customer: string;
  readonly price: number;
  readonly paid: boolean;
}

/** Last year's graph. */
export function oldOrders(store: CheckpointStore) {
  return new StateGraph<OrderV0>({
    name: "order",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("accept", (state) => pause(state, { reason: "waits for the payment" }))
    .addNode("send", (state) => state)
    .addEdge("accept", "send")
    .setEntryPoint("accept")
    .setExitPoint("send");
}
