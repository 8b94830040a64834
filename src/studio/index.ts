/**
 * A page on the runs of a store, and the HTTP API below it.
 *
 * @packageDocumentation
 */

export type * from "./api.js";
