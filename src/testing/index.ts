/**
 * Tools for testing stores and graphs: the suite that every store must pass, a fake clock, and crashes
 * at a chosen save.
 *
 * @packageDocumentation
 */
export { type CrashPoint, crashAt } from "./crash-at.js";
export { type FakeClock, useFakeClock } from "./fake-clock.js";
export { type StoreSuiteOptions, testCheckpointStore } from "./store-suite.js";
