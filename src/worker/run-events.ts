import { isoNow } from "../clock.js";
import type { AnyEvent } from "../events.js";
import type { JobEvent } from "./listener.js";

/** What the queue tells of a run. */
export interface QueueEvent {
  /** It waits for a worker, has one, waits for a moment or for input, was left by a dead worker, or ended. */
  readonly type:
    | "run.waiting"
    | "run.active"
    | "run.delayed"
    | "run.stalled"
    | "run.completed"
    | "run.cancelled"
    | "run.failed";
  /** When this process heard of it, ISO 8601. */
  readonly timestamp: string;
  /** The run. */
  readonly runId: string;
  /** The message of the error, if it failed. */
  readonly error?: string;
}

/** One event of a run: what the queue tells, and those of the graph that the worker's `events` option names. */
export type RunEvent = QueueEvent | AnyEvent;

/** What to publish of a run that was taken out of the queue. */
export function cancelledEvent(jobId: string): {
  readonly jobId: string;
  readonly removed: string;
} {
  return { jobId, removed: "yes" };
}

/** An event of the queue as a run's event. */
export function toRunEvent(runId: string, { type, fields }: JobEvent): RunEvent {
  const told = { timestamp: isoNow(), runId };
  if (type === "removed" || fields.removed !== undefined) return { type: "run.cancelled", ...told };
  if (type === "waymark") return JSON.parse(String(fields.told)) as AnyEvent;
  if (type === "failed") return { type: "run.failed", ...told, error: String(fields.failedReason) };
  const { status } = Object(fields.returnvalue) as { readonly status?: unknown };
  const name = type === "completed" && status === "cancelled" ? "cancelled" : type;
  return { type: `run.${name}` as QueueEvent["type"], ...told };
}

/** Whether a run does no more after this. */
export function isLast({ type }: { readonly type: string }): boolean {
  return type === "run.completed" || type === "run.cancelled" || type === "run.failed";
}
