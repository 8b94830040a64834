import { afterAll, expect, test } from "vitest";
import type { CheckpointStore } from "waymark";
import { testCheckpointStore } from "waymark/testing";
import { SimulatedBackend, SimulatedStore } from "../../../src/testing/simulate/backend.js";
import { Database } from "../../../src/testing/simulate/database.js";
import { Network } from "../../../src/testing/simulate/network.js";
import { Process, World } from "../../../src/testing/simulate/world.js";
import { linear } from "../../graphs.js";

const unobserved = { written: () => {}, saved: () => {}, claimed: () => {}, released: () => {} };

/** One simulated database, whose time passes by itself until another one is opened. */
class Place {
  static current: Place | undefined;
  readonly #world = new World(false);
  readonly #database = new Database(this.#world, unobserved, {});
  readonly #network = new Network(this.#world, this.#database, 1);
  #stores = 0;

  constructor() {
    Place.current = this;
    void this.#live();
  }

  open(): CheckpointStore {
    const process = new Process(this.#stores++, 1, 7);
    // What it awaits comes from the test, not from a node.
    process.expects++;
    const backend = new SimulatedBackend(process, this.#network, this.#database, unobserved);
    return new SimulatedStore(backend, 3);
  }

  async #live(): Promise<void> {
    while (Place.current === this) {
      if (!(await this.#world.step())) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

afterAll(() => {
  Place.current = undefined;
});

// What a simulation finds is worth something only if its database is a store like the others.
testCheckpointStore({
  name: "the simulated database",
  create: () => new Place().open(),
  reopen: () => (Place.current ?? new Place()).open(),
  test,
});

test("the simulated database keeps the topology of a graph", async () => {
  const store = new Place().open();
  const { topology } = linear(["a", "b"]);
  await store.saveTopology?.(topology);
  await store.saveTopology?.(topology);
  expect(await store.topology?.(topology.fingerprint)).toEqual(topology);
  expect(await store.topology?.("another")).toBeUndefined();
});
