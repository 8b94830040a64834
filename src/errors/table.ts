import {
  CheckpointConflictError,
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  ConfigError,
  type ErrorCode,
  ExecutionError,
  GraphError,
  MigrationError,
  PauseTimeoutError,
  SchemaError,
  SerializationError,
  WaymarkError,
} from "../errors.js";

/** What the rest of waymark needs to know about an error code. */
export interface ErrorFacts {
  /** The class that carries it. */
  readonly class: abstract new (
    ...args: never
  ) => WaymarkError;
  /** The command's exit code: 1 if a run or a store is at fault, 2 if the call is, 3 if something is missing. */
  readonly exit: 1 | 2 | 3;
  /** Whether retrying without a change is pointless. */
  readonly permanent: boolean;
  /** The verb of the command that helps, and how. */
  readonly hint?: Hint;
}

/** A verb of the command, and what it does about an error. */
interface Hint {
  readonly verb: string;
  /** Whether it takes the run that the error names. */
  readonly ofRun: boolean;
  readonly does: string;
}

type Facts = Partial<Omit<ErrorFacts, "class">>;

function of(owner: ErrorFacts["class"], facts: Facts = {}): ErrorFacts {
  return { class: owner, exit: 1, permanent: false, ...facts };
}

const graph = of(GraphError, { permanent: true });
const execution = of(ExecutionError);
const hopeless = of(ExecutionError, { permanent: true });
const node = of(WaymarkError);
const checksStore: Hint = { verb: "doctor", ofRun: false, does: "checks the store" };

/** Every error code. A new one has its row here, and its section in guide/troubleshooting.md. */
export const errorTable: Readonly<Record<ErrorCode, ErrorFacts>> = {
  GRAPH_NODE_NAME: graph,
  GRAPH_NODE_DUPLICATE: graph,
  GRAPH_NODE_FUNCTION: graph,
  GRAPH_NODE_UNKNOWN: graph,
  GRAPH_NODE_UNREACHABLE: graph,
  GRAPH_NODE_DEAD_END: graph,
  GRAPH_PREDICATE: graph,
  GRAPH_ENTRY_DUPLICATE: graph,
  GRAPH_NO_NODES: graph,
  GRAPH_NO_ENTRY: graph,
  GRAPH_NO_EXIT: graph,
  GRAPH_CYCLE: graph,
  GRAPH_STATE: graph,
  GRAPH_MISMATCH: graph,
  NODE_FAILED: execution,
  NODE_RESULT: hopeless,
  PREDICATE_FAILED: execution,
  NO_MATCHING_EDGE: hopeless,
  MAX_ITERATIONS: hopeless,
  ABORTED: execution,
  CHAIN_FAILED: node,
  PARALLEL_FAILED: node,
  ROUTE_CHOICE: node,
  ROUTE_UNKNOWN: node,
  ROUTE_FAILED: node,
  CHECKPOINT_SAVE: of(CheckpointSaveError, { hint: checksStore }),
  CHECKPOINT_NOT_FOUND: of(CheckpointNotFoundError, {
    exit: 3,
    hint: { verb: "list", ofRun: false, does: "shows the runs" },
  }),
  CHECKPOINT_CORRUPT: of(CheckpointCorruptionError, {
    permanent: true,
    hint: { verb: "validate", ofRun: false, does: "shows what is wrong" },
  }),
  CHECKPOINT_CONFLICT: of(CheckpointConflictError, {
    hint: { verb: "watch", ofRun: true, does: "follows it" },
  }),
  SERIALIZATION: of(SerializationError, { permanent: true }),
  MIGRATION: of(MigrationError, { permanent: true }),
  SCHEMA: of(SchemaError, { permanent: true }),
  PAUSE_TIMEOUT: of(PauseTimeoutError, { permanent: true }),
  STORE: of(WaymarkError, { hint: checksStore }),
  QUEUE: of(WaymarkError),
  CONFIG: of(ConfigError, { exit: 2, permanent: true }),
};
