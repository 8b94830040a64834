/**
 * A page on the runs of a store, and the HTTP API below it.
 *
 * @packageDocumentation
 */

export type * from "./api.js";
export { nodeListener } from "./node.js";
export type { StudioOptions } from "./options.js";
export { type StudioHandler, studio } from "./studio.js";
