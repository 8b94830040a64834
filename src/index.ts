/**
 * A typed state graph whose state is its own checkpoint, so any run can stop anywhere and continue.
 *
 * @packageDocumentation
 */

export type { Migration, Migrations } from "./checkpoint/migration.js";
export type {
  Checkpoint,
  CheckpointAt,
  CheckpointStore,
  Claim,
  ClaimHolder,
  ClaimOptions,
  ExportedCheckpoint,
  Finding,
  HistoryEntry,
  Problem,
  Retention,
  RunFilter,
  RunSummary,
  SaveOptions,
  StoreContext,
} from "./checkpoint/store.js";
export {
  ChainError,
  CheckpointConflictError,
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  ConfigError,
  type ConflictReason,
  type ErrorCode,
  type ErrorState,
  type ErrorWithCode,
  ExecutionError,
  type ExecutionErrorCode,
  type ExecutionErrorOptions,
  FatalError,
  GraphError,
  type GraphErrorCode,
  type ItemError,
  isWaymarkError,
  MigrationError,
  ParallelError,
  PauseTimeoutError,
  RetryableError,
  RouteError,
  SchemaError,
  type SchemaIssue,
  SerializationError,
  WaymarkError,
} from "./errors.js";
export type * from "./event-map.js";
export type {
  AnyEvent,
  EventHandler,
  EventObserver,
  EventTail,
  EventType,
  Observer,
  WaymarkEvent,
} from "./events.js";
export type {
  GraphTopology,
  TopologyEdge,
  TopologyNode,
  TopologyTask,
} from "./graph/description.js";
export {
  type AnyResult,
  type CheckedResult,
  END,
  type LedgerWriter,
  type NodeContext,
  type NodeFunction,
  type NodeResult,
  type ProgressPart,
  type RetryPolicy,
  type Saves,
} from "./graph/node.js";
export {
  type Pause,
  type PauseAfterOptions,
  type PauseOptions,
  type PauseQuestion,
  pause,
  type SchemaPauseOptions,
} from "./graph/pause.js";
export { type ChainOptions, type ChainStep, chain } from "./nodes/chain.js";
export {
  type CheckedDag,
  type CheckedTasks,
  type DagNodeTask,
  type DagOptions,
  type DagTask,
  type DagTasks,
  dag,
} from "./nodes/dag.js";
export type { Change, ItemContext, Items } from "./nodes/items.js";
export {
  type MapOptions,
  map,
  type ParallelOptions,
  type ParallelWorker,
  parallel,
} from "./nodes/parallel.js";
export { route } from "./nodes/route.js";
export { type SubgraphOptions, subgraph } from "./nodes/subgraph.js";
export type { TaskFunction, TaskOptions } from "./nodes/task.js";
export { type ConsoleObserverOptions, consoleObserver } from "./observers/console.js";
export { getObserver, noopObserver, registerObserver } from "./observers/registry.js";
export { type RecoverOptions, type RunRecovery, recoverRuns } from "./recovery/recover-runs.js";
export type {
  Breakpoints,
  CheckpointConfig,
  GraphConfig,
  MaxLoss,
  ObserverConfig,
  RecordConfig,
} from "./run/config.js";
export type { EventsOptions, RunHandle, RunState, WaitOptions } from "./run/handles/handle.js";
export type { ValuesEvent } from "./run/handles/stream.js";
export type { MissingNode } from "./run/position/position.js";
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
} from "./run/saving/triggers.js";
export {
  type AnyGraph,
  type ExecuteOptions,
  type ResumeOptions,
  StateGraph,
  type StreamOptions,
} from "./run/state-graph.js";
export type { NodeOptions } from "./run/visit/attempts.js";
export type { NodeWork, Visits } from "./state/counts.js";
export type { Saved, SavedNow } from "./state/fields.js";
export type { Draft, Immutable } from "./state/immutable.js";
export type { StateJSON } from "./state/json.js";
export type {
  Agent,
  AgentUpdate,
  ConfidenceRecord,
  Decision,
  LedgerDropped,
  LedgerJSON,
  LedgerLimits,
  Origin,
  Output,
  TallyJSON,
  UsageTotals,
} from "./state/ledger.js";
export { Ledger } from "./state/ledger.js";
export type { Metadata } from "./state/metadata.js";
export type { PauseRequest } from "./state/pauses.js";
export { always, and, keyEquals, keyExists, not, or, type Predicate } from "./state/predicates.js";
export type { GraphIdentity, ParentLink, Recovery, RunError, RunStatus } from "./state/record.js";
export { append, max, type Reducer, type Reducers, sum, union } from "./state/reducers.js";
export type { UnfinishedJSON } from "./state/results.js";
export type {
  StandardIssue,
  StandardPathSegment,
  StandardResult,
  StandardSchema,
  StandardTypes,
} from "./state/schema.js";
export { type Patch, State, type StateOptions } from "./state/state.js";
export type {
  AttemptRecord,
  BegunJSON,
  ItemJSON,
  ItemOutcome,
  ItemRecord,
  NodeTotals,
  StepJSON,
  StepRecord,
} from "./state/steps.js";
export { MemoryStore, type MemoryStoreOptions } from "./stores/memory.js";
export {
  type CheckpointStoreFactory,
  getCheckpointStore,
  registerCheckpointStore,
} from "./stores/registry.js";
export type { Usage, UsageCall, UsagePrice } from "./usage.js";
