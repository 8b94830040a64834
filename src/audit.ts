import type { EventMap } from "./event-map.js";

/** Who touched a checkpoint, if the graph's `audit` option says so. @inline */
export type Audit = Pick<EventMap["checkpoint.load"], "actor" | "purpose">;
