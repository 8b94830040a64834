/**
 * A typed state graph whose state is its own checkpoint, so any run can stop anywhere and continue.
 *
 * @packageDocumentation
 */

export type { Migration, Migrations } from "./checkpoint/migration.js";
export type {
  CheckpointAt,
  CheckpointStore,
  Claim,
  ClaimHolder,
  ExportedCheckpoint,
  Finding,
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
  type ErrorWithCode,
  ExecutionError,
  FatalError,
  GraphError,
  isWaymarkError,
  MigrationError,
  PauseTimeoutError,
  RetryableError,
  SchemaError,
  type SchemaIssue,
  SerializationError,
  WaymarkError,
} from "./errors.js";
/** What each event carries, by name; `EventMap["…"]` gives the same by the type of the event. */
export type * as EventData from "./event-data.js";
export type { EventMap } from "./event-map.js";
export type {
  AnyEvent,
  EventHandler,
  EventType,
  Observer,
  WaymarkEvent,
} from "./events.js";
export type { GraphTopology } from "./graph/description.js";
export {
  END,
  type End,
  type LedgerWriter,
  type NodeContext,
  type NodeFunction,
  type NodeResult,
} from "./graph/node.js";
export {
  type Pause,
  type PauseOptions,
  pause,
} from "./graph/pause.js";
export {
  type ChainOptions,
  type ChainStep,
  chain,
} from "./nodes/chain.js";
export {
  type DagOptions,
  type DagTask,
  type DagTasks,
  dag,
} from "./nodes/dag.js";
export { ChainError, ParallelError, RouteError } from "./nodes/errors.js";
export { map } from "./nodes/map.js";
export { type ParallelOptions, type ParallelWorker, parallel } from "./nodes/parallel.js";
export { route } from "./nodes/route.js";
export type { Saves } from "./nodes/saves.js";
export type { ItemContext } from "./nodes/scope.js";
export { subgraph } from "./nodes/subgraph.js";
export { type ConsoleObserverOptions, consoleObserver } from "./observers/console.js";
export { getObserver, noopObserver, registerObserver } from "./observers/registry.js";
export type { RunRecovery } from "./recovery/recover-run.js";
export { type RecoverOptions, recoverRuns } from "./recovery/recover-runs.js";
export type { NodeOptions, RetryPolicy } from "./run/attempts.js";
export type {
  Breakpoints,
  CheckpointConfig,
  GraphConfig,
} from "./run/config.js";
export type { RunHandle, RunState } from "./run/handle.js";
export type { MissingNodes } from "./run/standing.js";
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
export { append, max, type Reducers, sum, union } from "./state/reducers.js";
export type { StandardSchema } from "./state/schema.js";
export { type Patch, State, type StateOptions } from "./state/state.js";
export type { StepRecord } from "./state/steps.js";
export { MemoryStore } from "./stores/memory.js";
export {
  getCheckpointStore,
  registerCheckpointStore,
} from "./stores/registry.js";
export type { Usage, UsageCall } from "./usage.js";
