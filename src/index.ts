/**
 * A typed state graph whose state is its own checkpoint, so any run can stop anywhere and go on.
 *
 * @packageDocumentation
 */
export type { Migration, MigrationMethod, Migrations } from "./checkpoint/migration.js";
export type {
  Checkpoint,
  CheckpointAt,
  CheckpointStore,
  Claim,
  ClaimOptions,
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
  type ErrorState,
  type ErrorWithCode,
  ExecutionError,
  type ExecutionErrorCode,
  type ExecutionErrorOptions,
  FatalError,
  GraphError,
  type GraphErrorCode,
  isWaymarkError,
  MigrationError,
  type NodeErrorCode,
  RetryableError,
  SerializationError,
  WaymarkError,
} from "./errors.js";
export type {
  AtNode,
  Audit,
  CheckpointDeleteData,
  CheckpointErrorData,
  CheckpointLoadData,
  CheckpointResumeData,
  CheckpointSaveData,
  CycleData,
  DecisionData,
  EdgeData,
  EdgeEvaluateData,
  EventMap,
  GraphCompleteData,
  GraphFailData,
  GraphPauseData,
  GraphStartData,
  ItemCompleteData,
  ItemData,
  ItemsCompleteData,
  ItemsData,
  KeyData,
  KeysData,
  MismatchData,
  NodeCompleteData,
  NodeRetryData,
  ParallelCompleteData,
  ParallelStartData,
  ProgressData,
  QuarantineData,
  RouteExecuteData,
  RouteSelectData,
} from "./event-map.js";
export type {
  AnyEvent,
  EventHandler,
  EventObserver,
  EventType,
  Observer,
  WaymarkEvent,
} from "./events.js";
export type {
  LedgerWriter,
  NodeContext,
  NodeFunction,
  NodeResult,
  ProgressPart,
} from "./graph/node.js";
export { type Pause, type PauseAfterOptions, type PauseOptions, pause } from "./graph/pause.js";
export {
  type ChainOptions,
  type ChainStep,
  chain,
} from "./nodes/chain.js";
export { type DagOptions, type DagTask, type DagTasks, dag } from "./nodes/dag.js";
export { ChainError, type ItemError, ParallelError, RouteError } from "./nodes/errors.js";
export { type ParallelOptions, type ParallelWorker, parallel } from "./nodes/parallel.js";
export { type RouteHandler, route } from "./nodes/route.js";
export type { Change, ItemContext, Items } from "./nodes/scope.js";
export { type SubgraphOptions, subgraph } from "./nodes/subgraph.js";
export { type ConsoleObserverOptions, consoleObserver } from "./observers/console.js";
export { getObserver, noopObserver, registerObserver } from "./observers/registry.js";
export type { RecoverableGraph, RunRecovery } from "./recovery/recover-run.js";
export { type RecoverOptions, recoverRuns } from "./recovery/recover-runs.js";
export type { NodeOptions, RetryPolicy } from "./run/attempts.js";
export type { Breakpoints, CheckpointConfig, GraphConfig, ObserverConfig } from "./run/config.js";
export type { SchemaIssue, SchemaPathSegment, SchemaResult, StandardSchema } from "./run/schema.js";
export { type ExecuteOptions, type ResumeOptions, StateGraph } from "./run/state-graph.js";
export {
  afterNodes,
  everyMs,
  onError,
  onMemoryPressure,
  type Trigger,
  type TriggerInput,
  type TriggerState,
  when,
  whenConfidenceBelow,
  whenConfidenceCrosses,
} from "./run/triggers.js";
export type { RecoveryJSON, StateJSON, UnfinishedJSON } from "./state/json.js";
export type { Agent, Decision, Origin, Output } from "./state/ledger/entries.js";
export type { Usage, UsageTotals } from "./state/ledger/usage.js";
export {
  Ledger,
  type LedgerDropped,
  type LedgerJSON,
  type LedgerLimits,
} from "./state/ledger.js";
export { always, and, keyEquals, keyExists, not, or, type Predicate } from "./state/predicates.js";
export type {
  GraphIdentity,
  ParentLink,
  PauseRequest,
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
