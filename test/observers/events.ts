import type { AnyEvent, EventMap } from "../../src/index.js";

/** An event as a graph called `test` would tell it. */
export function event<T extends keyof EventMap>(
  type: T,
  runId: string,
  data: EventMap[T],
  timestamp = new Date().toISOString(),
): AnyEvent {
  return { type, timestamp, source: "test", runId, data } as unknown as AnyEvent;
}
