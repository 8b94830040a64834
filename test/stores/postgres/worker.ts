import { type ChildProcess, fork } from "node:child_process";
import { on } from "node:events";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll } from "vitest";
import { bundle, removeBundle } from "../../crash/bundle.js";

/** What a process tells; see fixtures/worker.ts. */
export interface Message {
  readonly ready?: boolean;
  readonly runs?: number;
  readonly epoch?: number;
  readonly saved?: number;
  readonly code?: string;
  readonly lost?: string;
}

/** Starts processes, and ends them after each test. */
export class Workers {
  readonly #all: Worker[] = [];
  #script = "";

  static use(): Workers {
    const workers = new Workers();
    let built: Awaited<ReturnType<typeof bundle>> | undefined;
    beforeAll(async () => {
      const external = ["pg", "@electric-sql/pglite"];
      built = await bundle("worker", join(import.meta.dirname, "fixtures"), external);
      workers.#script = built.script;
    });
    afterEach(() => {
      for (const worker of workers.#all.splice(0)) worker.signal("SIGKILL");
    });
    afterAll(() => {
      if (built !== undefined) removeBundle(built);
    });
    return workers;
  }

  start(client: string, schema: string, ttl: number): Worker {
    const worker = new Worker(fork(this.#script, [client, schema, String(ttl)]));
    this.#all.push(worker);
    return worker;
  }
}

/** A process that works on a schema. */
export class Worker {
  readonly #child: ChildProcess;
  /** All that it has told. */
  readonly told: Message[] = [];

  constructor(child: ChildProcess) {
    this.#child = child;
    child.on("message", (message: Message) => this.told.push(message));
  }

  order(order: "open" | "work"): void {
    this.#child.send(order);
  }

  signal(signal: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void {
    this.#child.kill(signal);
  }

  /** Ends it without a chance to say goodbye; resolves when it is gone. */
  async kill(): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once("close", resolve));
    this.signal("SIGKILL");
    await gone;
  }

  /** The sequence of the last save that it was told is done. */
  get acknowledged(): number {
    return Math.max(0, ...this.told.flatMap(({ saved = [] }) => saved));
  }

  /** Resolves when it has told something of a kind. */
  async hear<K extends keyof Message>(
    kind: K,
    fits = (_: Message): boolean => true,
  ): Promise<Message> {
    const isIt = (message: Message): boolean => kind in message && fits(message);
    const before = this.told.find(isIt);
    if (before !== undefined) return before;
    for await (const [message] of on(this.#child, "message")) if (isIt(message)) return message;
    throw new Error("it has ended");
  }
}
