/**
 * A web page that shows the runs of a store, and its HTTP API.
 *
 * @packageDocumentation
 */

export type * from "./api.js";
export { nodeListener } from "./node.js";
export type { StudioOptions } from "./options.js";
export { type StudioHandler, studio } from "./studio.js";
