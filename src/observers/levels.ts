import type { AnyEvent, EventType } from "../events.js";

/** The log level of an event. */
export type Level = "debug" | "info" | "warn" | "error";

/** The beginning of the types of several events. */
type GroupOf<T> = T extends `${infer Group}.${string}` ? `${Group}.` : never;

const levels: readonly (readonly [prefix: EventType | GroupOf<EventType>, level: Level])[] = [
  ["graph.fail", "error"],
  ["checkpoint.error", "error"],
  ["checkpoint.warning", "warn"],
  ["ai.warning", "warn"],
  ["checkpoint.quarantine", "error"],
  ["graph.mismatch", "warn"],
  ["node.retry", "warn"],
  ["state.", "debug"],
  ["edge.", "debug"],
];

/** The level of an event: failures are errors, retries warnings, `state.*` and `edge.*` are for debugging. */
export function levelOf({ type, data }: AnyEvent): Level {
  if (type === "node.complete" && data.error !== undefined) return "warn";
  return levels.find(([prefix]) => type.startsWith(prefix))?.[1] ?? "info";
}
