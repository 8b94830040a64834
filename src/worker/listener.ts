import type { Engine, RunEvents } from "./engine.js";

/** What the queue reports about a job. */
export interface JobEvent {
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const types = [
  "waiting",
  "active",
  "delayed",
  "stalled",
  "completed",
  "failed",
  "removed",
  "waymark",
] as const;

/** How long to keep listening for nobody, in milliseconds: somebody may be next. */
const IDLE = 1000;

/** Reports what happens to the jobs of one queue to any number of listeners. The queue is read only while somebody does. */
export class Listener {
  readonly #engine: Engine;
  readonly #name: string;
  readonly #handlers = new Map<string, Set<(event: JobEvent) => void>>();
  #events: RunEvents | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(engine: Engine, name: string) {
    this.#engine = engine;
    this.#name = name;
  }

  /** Calls a handler for each event of a job; gives the way to stop that, once it listens. */
  async listen(jobId: string, handler: (event: JobEvent) => void): Promise<() => void> {
    const handlers = this.#handlers.get(jobId) ?? new Set();
    handlers.add(handler);
    this.#handlers.set(jobId, handlers);
    this.#events ??= this.#open();
    await this.#events.waitUntilReady();
    return () => {
      handlers.delete(handler);
      if (handlers.size === 0) this.#handlers.delete(jobId);
      if (this.#handlers.size === 0) this.#idle ??= setTimeout(() => this.#close(), IDLE).unref();
    };
  }

  #close(): void {
    this.#idle = undefined;
    if (this.#handlers.size > 0 || this.#events === undefined) return;
    void this.#engine.closeEvents(this.#events);
    this.#events = undefined;
  }

  #open(): RunEvents {
    const events = this.#engine.events(this.#name);
    for (const type of types) {
      events.on(type as "waiting", (fields: { readonly jobId: string }) => {
        const event = { type, fields: fields as unknown as JobEvent["fields"] };
        for (const handler of this.#handlers.get(fields.jobId) ?? []) handler(event);
      });
    }
    return events;
  }
}
