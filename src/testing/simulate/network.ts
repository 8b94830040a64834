import { BackendError } from "../../checkpoint/records/backend.js";
import type { Process, World } from "./world.js";

/** How long a caller waits for an answer that never comes, in milliseconds. */
const TIMEOUT = 5000;

/** The shortest time that a message takes, in milliseconds. */
const FASTEST = 0.1;

/** The other end of the network. */
export interface Server {
  /** Whether it responds at all. */
  readonly isUp: boolean;
  /** Changes when it loses what it was doing. */
  readonly generation: number;
  /** Syncs what was written so far to its disk. */
  sync(): void;
}

export interface CallOptions {
  /** Whether the response must wait until the server's disk has what was written. */
  readonly isDurable?: boolean;
}

/** Calls from processes to one server, over a network that loses, delays and duplicates messages. */
export class Network {
  /** The longest additional delay of all messages, in milliseconds. */
  delay = 0;
  readonly #world: World;
  readonly #server: Server;
  readonly #latency: number;
  readonly #acknowledgesEarly: boolean;

  /**
   * @param latency - the longest time that a message takes, in milliseconds.
   * @param acknowledgesEarly - the planted fault: an answer does not wait for the disk.
   */
  constructor(world: World, server: Server, latency: number, acknowledgesEarly = false) {
    this.#world = world;
    this.#latency = latency;
    this.#server = server;
    this.#acknowledgesEarly = acknowledgesEarly;
  }

  /** Calls the server, and returns its response. */
  call<T>(process: Process, what: string, serve: () => T, options: CallOptions = {}): Promise<T> {
    const world = this.#world;
    // The node of a dead process may still be doing real work.
    if (!process.isAlive) return new Promise(() => {});
    world.note(process, `calls ${what}`);
    const isDoubled = process.callsToDouble > 0;
    if (isDoubled) process.callsToDouble--;
    // The process expects a response until it arrives, wherever the message is.
    process.expects++;
    return new Promise((resolve, reject) => {
      const answer = (ms: number, end: () => void): void => {
        process.expects--;
        world.after(ms, process, end);
      };
      const fail = (ms: number, problem: string, unsure: boolean): void =>
        answer(ms, () => reject(networkError(`${what}: ${problem}`, unsure)));
      const arrive = (isLast: boolean): void => {
        if (process.isCut || !this.#server.isUp) {
          if (isLast && process.isCut) fail(TIMEOUT, "no answer", true);
          else if (isLast) fail(this.#travel(process), "connection refused", false);
          return;
        }
        let served: () => void;
        try {
          const value = serve();
          served = () => resolve(value);
        } catch (error) {
          served = () => reject(error);
        }
        world.note(undefined, `serves ${what} of ${process.name}`);
        this.#onDisk(process, options, (isThere) => {
          if (!isLast) return;
          const isLost = isThere && !process.isCut && process.answersToLose > 0;
          if (isLost) process.answersToLose--;
          if (process.isCut) fail(TIMEOUT, "no answer", true);
          else if (isLost || !isThere) fail(this.#travel(process), "connection reset", true);
          else answer(this.#travel(process), served);
        });
      };
      world.after(this.#travel(process), undefined, () => arrive(!isDoubled));
      if (isDoubled)
        world.after(this.#travel(process) + this.#latency, undefined, () => arrive(true));
    });
  }

  /** Calls back when the disk has what was written, or has lost it. */
  #onDisk(
    process: Process,
    { isDurable = false }: CallOptions,
    done: (isThere: boolean) => void,
  ): void {
    const isEarly = !isDurable || this.#acknowledgesEarly;
    if (isEarly) done(true);
    if (!isDurable) return;
    const { generation } = this.#server;
    this.#world.after(process.random.between(100, 3000) / 1000, undefined, () => {
      const isThere = this.#server.generation === generation;
      if (isThere) this.#server.sync();
      if (!isEarly) done(isThere);
    });
  }

  #travel({ random, delay }: Process): number {
    return (
      FASTEST + random.next() * (this.#latency - FASTEST) + random.next() * (delay + this.delay)
    );
  }
}

function networkError(problem: string, unsure: boolean): BackendError {
  return new BackendError(problem, { unsure, cause: new Error(problem) });
}
