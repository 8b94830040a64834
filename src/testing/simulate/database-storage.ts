import type { CheckpointStore } from "../../checkpoint/store.js";
import { SimulatedBackend, SimulatedStore } from "./backend.js";
import { Database, type DatabaseBugs } from "./database.js";
import { Network } from "./network.js";
import type { Storage, StorageObserver } from "./storage.js";
import type { Process, World } from "./world.js";

/** The most checkpoints between two full ones: few, so that both kinds occur often. */
const SNAPSHOT_EVERY = 4;

/** A database and the network between it and the workers. */
export class DatabaseStorage extends Database implements Storage {
  readonly isLocal = false;
  readonly #network: Network;
  readonly #observer: StorageObserver;

  /** @param latency - the longest time that a message takes, in milliseconds. */
  constructor(world: World, observer: StorageObserver, latency: number, bugs: DatabaseBugs) {
    super(world, observer, bugs);
    this.#observer = observer;
    this.#network = new Network(world, this, latency, bugs.earlyAcknowledgement);
  }

  get delay(): number {
    return this.#network.delay;
  }

  set delay(ms: number) {
    this.#network.delay = ms;
  }

  open(process: Process): CheckpointStore {
    const backend = new SimulatedBackend(process, this.#network, this, this.#observer);
    return new SimulatedStore(backend, SNAPSHOT_EVERY);
  }
}
