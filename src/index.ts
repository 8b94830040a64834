/**
 * A typed state graph whose state is its own checkpoint, so any run can stop anywhere and continue.
 *
 * @packageDocumentation
 */

export type { Migrations } from "./checkpoint/migration.js";
export type {
  CheckpointAt,
  CheckpointStore,
  Claim,
  ExportedCheckpoint,
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
  ExecutionError,
  FatalError,
  GraphError,
  isWaymarkError,
  MigrationError,
  PauseTimeoutError,
  RetryableError,
  SchemaError,
  SerializationError,
  WaymarkError,
} from "./errors.js";
export type { EventMap } from "./event-map.js";
export type {
  AnyEvent,
  EventHandler,
  Observer,
  WaymarkEvent,
} from "./events.js";
export type { GraphTopology } from "./graph/description.js";
export {
  END,
  type LedgerWriter,
  type NodeContext,
  type NodeFunction,
  type NodeResult,
} from "./graph/node.js";
export {
  type Pause,
  pause,
} from "./graph/pause.js";
export { chain } from "./nodes/chain.js";
export { type DagTasks, dag } from "./nodes/dag.js";
export { ChainError, ParallelError, RouteError } from "./nodes/errors.js";
export { map } from "./nodes/map.js";
export { parallel } from "./nodes/parallel.js";
export { route } from "./nodes/route.js";
export type { ItemContext } from "./nodes/scope.js";
export { subgraph } from "./nodes/subgraph.js";
export { consoleObserver } from "./observers/console.js";
export { getObserver, noopObserver, registerObserver } from "./observers/registry.js";
export { recoverRuns } from "./recovery/recover-runs.js";
export type { NodeOptions, RetryPolicy } from "./run/attempts.js";
export type { GraphConfig } from "./run/config.js";
export type { RunHandle } from "./run/handle.js";
export {
  type ExecuteOptions,
  type ResumeOptions,
  StateGraph,
} from "./run/state-graph.js";
export {
  afterNodes,
  everyMs,
  onError,
  onMemoryPressure,
  type Trigger,
  when,
  whenConfidenceBelow,
  whenConfidenceCrosses,
} from "./run/triggers.js";
export type { ValuesEvent } from "./run/values.js";
export type { Draft, Immutable } from "./state/immutable.js";
export type { StateJSON } from "./state/json.js";
export type {
  Agent,
  Decision,
} from "./state/ledger/entries.js";
export type { UsageTotals } from "./state/ledger/usage.js";
export { Ledger } from "./state/ledger.js";
export { always, and, keyEquals, keyExists, not, or, type Predicate } from "./state/predicates.js";
export type {
  Metadata,
  PauseRequest,
  RunError,
  RunStatus,
} from "./state/record.js";
export { append, max, sum, union } from "./state/reducers.js";
export type { StandardSchema } from "./state/schema.js";
export { type Patch, State } from "./state/state.js";
export type { StepRecord } from "./state/steps.js";
export { MemoryStore } from "./stores/memory.js";
export {
  getCheckpointStore,
  registerCheckpointStore,
} from "./stores/registry.js";
export type { Usage } from "./usage.js";
