/**
 * A typed state graph whose state is its own checkpoint, so any run can stop anywhere and go on.
 *
 * @packageDocumentation
 */
export type { Migration, Migrations } from "./checkpoint/migration.js";
export type {
  CheckpointAt,
  CheckpointStore,
  HistoryEntry,
  Retention,
  RunFilter,
  RunSummary,
  SaveOptions,
  StoreContext,
} from "./checkpoint/store.js";
export {
  CheckpointConflictError,
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  ConfigError,
  type ErrorCode,
  type ErrorState,
  type ErrorWithCode,
  ExecutionError,
  type ExecutionErrorCode,
  type ExecutionErrorOptions,
  GraphError,
  type GraphErrorCode,
  isWaymarkError,
  MigrationError,
  SerializationError,
  WaymarkError,
} from "./errors.js";
export type {
  AnyEvent,
  EventHandler,
  EventMap,
  EventType,
  Observer,
  WaymarkEvent,
} from "./events.js";
export type { NodeContext, NodeFunction, NodeResult } from "./graph/node.js";
export { type ConsoleObserverOptions, consoleObserver } from "./observers/console.js";
export { getObserver, noopObserver, registerObserver } from "./observers/registry.js";
export type { CheckpointConfig, GraphConfig, ObserverConfig } from "./run/config.js";
export { type ExecuteOptions, type ResumeOptions, StateGraph } from "./run/state-graph.js";
export type { StateJSON } from "./state/json.js";
export { always, and, keyEquals, keyExists, not, or, type Predicate } from "./state/predicates.js";
export type {
  GraphIdentity,
  ParentLink,
  RunError,
  RunStatus,
  Saved,
  Visits,
} from "./state/record.js";
export { type Patch, State, type StateOptions } from "./state/state.js";
export { MemoryStore, type MemoryStoreOptions } from "./stores/memory.js";
export {
  type CheckpointStoreFactory,
  getCheckpointStore,
  registerCheckpointStore,
} from "./stores/registry.js";
