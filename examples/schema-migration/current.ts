import { type CheckpointStore, type Migrations, pause, StateGraph } from "waymark";
import type { OrderV0 } from "./old.js";

/** Version 1: prices are whole cents. */
interface OrderV1 {
  readonly customer: string;
  readonly cents: bigint;
  readonly paid: boolean;
}

/** Version 2, today's: names have parts, and it is known when an order was paid. */
export interface Order {
  readonly first: string;
  readonly last: string;
  readonly cents: bigint;
  readonly paidAt: Date | undefined;
}

/** Each by the version it starts from. They are never changed once released, only added to. */
const migrations: Migrations = {
  0: ({ price, ...rest }: OrderV0): OrderV1 => ({
    ...rest,
    cents: BigInt(Math.round(price * 100)),
  }),
  1: ({ customer, cents, paid }: OrderV1): Order => {
    const [first = "", ...last] = customer.split(" ");
    return { first, last: last.join(" "), cents, paidAt: paid ? new Date(0) : undefined };
  },
};

/** Today's graph. It has one node more than last year's; those that are still there kept their names. */
export function orders(store: CheckpointStore, version = 2) {
  return new StateGraph<Order>({
    name: "order",
    version,
    migrations,
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("accept", (state) => pause(state, { reason: "waits for the payment" }))
    .addNode("thank", (state) => {
      console.log(
        `  Dear ${state.data.first} ${state.data.last}, thank you for ${euros(state.data)}`,
      );
      return state;
    })
    .addNode("send", (state) => state)
    .addEdge("accept", "thank")
    .addEdge("thank", "send")
    .setEntryPoint("accept")
    .setExitPoint("send");
}

function euros({ cents }: Order): string {
  return `${cents / 100n}.${String(cents % 100n).padStart(2, "0")} EUR`;
}
