/** What the rest of waymark needs to know about an error code. */
interface ErrorFacts {
  /** The name of the class that carries it, as `classes.ts` exports it. */
  readonly class: string;
  /** The command's exit code: 1 if a run or a store is at fault, 2 if the call is, 3 if something is missing. */
  readonly exit: 1 | 2 | 3;
  /** The status of the studio's response. */
  readonly status: number;
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

const fault = { exit: 1, status: 500, permanent: false } as const;
const graph = { ...fault, class: "GraphError", status: 409, permanent: true } as const;
const execution = { ...fault, class: "ExecutionError" } as const;
const data = { ...fault, status: 422, permanent: true } as const;
const checksStore = { verb: "doctor", ofRun: false, does: "checks the store" } as const;

const rows = {
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
  NODE_RESULT: { ...execution, permanent: true },
  PREDICATE_FAILED: execution,
  NO_MATCHING_EDGE: { ...execution, permanent: true },
  MAX_ITERATIONS: { ...execution, permanent: true },
  ABORTED: { ...execution, status: 409 },
  CHAIN_FAILED: { ...fault, class: "ChainError" },
  PARALLEL_FAILED: { ...fault, class: "ParallelError" },
  ROUTE_CHOICE: { ...fault, class: "RouteError" },
  ROUTE_UNKNOWN: { ...fault, class: "RouteError" },
  ROUTE_FAILED: { ...fault, class: "RouteError" },
  CHECKPOINT_SAVE: { ...fault, class: "CheckpointSaveError", hint: checksStore },
  CHECKPOINT_NOT_FOUND: {
    ...fault,
    class: "CheckpointNotFoundError",
    exit: 3,
    status: 404,
    hint: { verb: "list", ofRun: false, does: "shows the runs" },
  },
  CHECKPOINT_CORRUPT: {
    ...data,
    class: "CheckpointCorruptionError",
    hint: { verb: "validate", ofRun: false, does: "shows what is wrong" },
  },
  CHECKPOINT_CONFLICT: {
    ...fault,
    class: "CheckpointConflictError",
    status: 409,
    hint: { verb: "watch", ofRun: true, does: "follows it" },
  },
  SERIALIZATION: { ...data, class: "SerializationError" },
  MIGRATION: { ...data, class: "MigrationError" },
  SCHEMA: { ...data, class: "SchemaError" },
  PAUSE_TIMEOUT: { ...data, class: "PauseTimeoutError", status: 409 },
  STORE: { ...fault, class: "WaymarkError", status: 503, hint: checksStore },
  QUEUE: { ...fault, class: "WaymarkError", status: 503 },
  CONFIG: { ...fault, class: "ConfigError", exit: 2, status: 400, permanent: true },
} as const satisfies Readonly<Record<string, ErrorFacts>>;

/** Every code an error of waymark can carry. Codes are stable: match on them, not on messages. */
export type ErrorCode = keyof typeof rows;

/** The name of the class that carries a code. */
export type ClassName<C extends ErrorCode> = (typeof rows)[C]["class"];

/** The codes that the class with a name carries. */
export type CodeOf<Name extends ClassName<ErrorCode>> = {
  [C in ErrorCode]: ClassName<C> extends Name ? C : never;
}[ErrorCode];

/** Every error. A new one has its row here, its class in `classes.ts`, and its section in guide/troubleshooting.md. */
export const errorTable: Readonly<Record<ErrorCode, ErrorFacts>> = rows;
