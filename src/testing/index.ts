/**
 * Tools for testing stores and graphs: the suite that every store must pass, a fake clock, crashes at a
 * chosen save, and a simulated world in which everything goes wrong.
 *
 * @packageDocumentation
 */
export { type CrashPoint, crashAt } from "./crash-at.js";
export { type FakeClock, useFakeClock } from "./fake-clock.js";
export type { SimulationRule } from "./simulate/checker.js";
export type { SimulationTools } from "./simulate/effects.js";
export type { EffectReport, SimulationFailure, SimulationReport } from "./simulate/report.js";
export type { Fault, FaultKind, SimulatedStorage, SimulationScript } from "./simulate/script.js";
export { type SimulateOptions, simulate } from "./simulate/simulate.js";
export type { SimulationSetup } from "./simulate/worker.js";
export { type StoreSuiteOptions, testCheckpointStore } from "./store-suite.js";
