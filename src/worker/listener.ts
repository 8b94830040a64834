import { isoNow } from "../clock.js";
import type { EventMap } from "../event-map.js";
import type { AnyEvent, EventType } from "../events.js";
import { answered } from "./backend.js";
import type { Engine, RunEvents } from "./engine.js";

/** An event that the queue reports about a job. */
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

/** How long to keep listening after the last listener has left, in milliseconds, in case another follows. */
const IDLE = 1000;

/** Reports the events of one queue's jobs to any number of listeners. Reads the queue only while there are any. */
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

  /** Calls a handler for each event of a job. Resolves, once it listens, to a function that stops it. */
  async listen(jobId: string, handler: (event: JobEvent) => void): Promise<() => void> {
    const handlers = this.#handlers.get(jobId) ?? new Set();
    handlers.add(handler);
    this.#handlers.set(jobId, handlers);
    const stop = (): void => {
      handlers.delete(handler);
      if (handlers.size === 0) this.#handlers.delete(jobId);
      if (this.#handlers.size === 0) this.#idle ??= setTimeout(() => this.#close(), IDLE).unref();
    };
    this.#events ??= this.#open();
    try {
      await answered(this.#events.waitUntilReady(), this.#engine.bounds.statementTimeout);
    } catch (error) {
      stop();
      throw error;
    }
    return stop;
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

/** The events that the queue reports about a run. */
type QueueEventType = Extract<EventType, `run.${string}`>;

/** Converts an event of the queue to a run's event; `source` is the name of its graph. */
export function toRunEvent(source: string, runId: string, { type, fields }: JobEvent): AnyEvent {
  const event = (name: QueueEventType, data: EventMap[QueueEventType] = {}): AnyEvent => {
    return { type: name, timestamp: isoNow(), source, runId, data };
  };
  if (type === "removed" || fields.removed !== undefined) return event("run.cancelled");
  if (type === "waymark") return JSON.parse(String(fields.payload)) as AnyEvent;
  if (type === "failed") return event("run.failed", { error: String(fields.failedReason) });
  const { status } = Object(fields.returnvalue) as { readonly status?: unknown };
  if (type === "completed" && status === "cancelled") return event("run.cancelled");
  return event(`run.${type}` as QueueEventType);
}

/** Whether this is the run's last event. */
export function isLast({ type }: { readonly type: string }): boolean {
  return type === "run.completed" || type === "run.cancelled" || type === "run.failed";
}
