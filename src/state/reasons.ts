/** The reasons of waymark's own saves. A user's triggers and milestones have others. */
export const reasons = [
  "start",
  "interval",
  "complete",
  "failure",
  "abort",
  "pause",
  "input",
  "resume",
  // The run continues from a breakpoint before a node.
  "breakpoint",
  "once",
  "recovery",
  "fork",
  "rollback",
  // By a client of a queue.
  "submit",
  "cancel",
  // By the triggers that come with waymark, and the adaptive interval.
  "node",
  "confidence",
  "time",
  "memory",
  "adaptive",
] as const;

/** One of them. */
export type Reason = (typeof reasons)[number];
