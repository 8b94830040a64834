import { isoNow } from "../clock.js";
import type { EventMap } from "../event-map.js";
import type { AnyEvent, EventType } from "../events.js";
import type { JobEvent } from "./listener.js";

/** The events that the queue reports about a run. */
type QueueEventType = Extract<EventType, `run.${string}`>;

/** The event to publish for a run that was removed from the queue. */
export function cancelledEvent(jobId: string): {
  readonly jobId: string;
  readonly removed: string;
} {
  return { jobId, removed: "yes" };
}

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
