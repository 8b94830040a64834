import type { EventMap } from "./event-map.js";

/** Who had to do with a checkpoint, where the graph's `audit` option says so. @inline */
export type Audit = Pick<EventMap["checkpoint.load"], "actor" | "purpose">;
