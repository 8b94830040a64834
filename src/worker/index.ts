/**
 * Runs submitted from any process and executed by any number of worker processes, on BullMQ.
 *
 * @packageDocumentation
 */
export type { LogPlace } from "../observers/run-files.js";
export type { AnyGraph } from "../run/state-graph.js";
export { Client, type ClientOptions, type FailedRun } from "./client.js";
export type { QueueConnection, QueueConnectionOptions } from "./connection.js";
export {
  type QueueMetrics,
  toPrometheus,
  type WorkerHealth,
  type WorkerMetrics,
} from "./metrics.js";
export type { GraphLimits, WorkerOptions } from "./options.js";
export type { QueuedRun } from "./source.js";
export type { ScheduleOptions, SubmitOptions, SubmittedGraph } from "./submission.js";
export { type CloseOptions, Worker } from "./worker.js";
