/**
 * For those who test stores and graphs: the suite that every store must pass, and a clock that stands still.
 *
 * @packageDocumentation
 */
export { type FakeClock, useFakeClock } from "./fake-clock.js";
export { type StoreSuiteOptions, testCheckpointStore } from "./store-suite.js";
