/**
 * A web page that shows the runs of a store, and its HTTP API.
 *
 * @packageDocumentation
 */

export type { Redaction } from "../codecs/redact.js";
export type { LogPlace } from "../observers/run-files.js";
export type { ReportError, RunReport, StepReport } from "../report/record.js";
export type { AnyGraph } from "../run/state-graph.js";
export type { Client } from "../worker/client.js";
export type { Auth } from "./access.js";
export type * from "./api.js";
export { type FetchHandler, type NodeListener, nodeListener } from "./node.js";
export type { StudioOptions } from "./options.js";
export { type StudioHandler, studio } from "./studio.js";
