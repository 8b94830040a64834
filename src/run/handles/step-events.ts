import type { EventMap } from "../../event-map.js";
import type { AnyEvent, EventType } from "../../events.js";
import type { State } from "../../state/state.js";
import type { StepRecord } from "../../state/steps.js";

/** An event that nobody listened to when it happened. */
export function eventOf<T extends EventType>(
  type: T,
  source: string,
  runId: string,
  data: EventMap[T],
  timestamp: string,
): AnyEvent {
  // A member of the union, which TypeScript can't infer for an open T.
  return { type, timestamp, source, runId, data } as unknown as AnyEvent;
}

/** The `node.complete` of a step. */
export function stepEvent(
  { node, step, durationMs, usage, completedAt }: StepRecord,
  runId: string,
  source: string,
): AnyEvent {
  const data = { node, step, durationMs, ...(usage !== undefined && { usage }) };
  return eventOf("node.complete", source, runId, data, completedAt);
}

/** The event with which a run stopped; `undefined` for one that was interrupted. */
export function lastEvent<D extends object>(state: State<D>, source: string): AnyEvent | undefined {
  const { runId, status, step, checkpointNode: node, savedAt, pauses, error } = state;
  switch (status) {
    case "completed":
      return eventOf("graph.complete", source, runId, { exitPoint: node, step }, savedAt);
    case "paused": {
      const reason = pauses.map((pause) => pause.reason).join(", ");
      return eventOf("graph.pause", source, runId, { node, step, reason }, savedAt);
    }
    case "failed": {
      const data = {
        node: error?.node ?? node,
        step,
        code: "NODE_FAILED",
        error: error?.message ?? "",
      };
      return eventOf("graph.fail", source, runId, data, savedAt);
    }
    default:
      return undefined;
  }
}
