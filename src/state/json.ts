import { SerializationError } from "../errors.js";
import { Counts, type NodeCount, type NodeWork, type Visits } from "./counts.js";
import { decode } from "./decode.js";
import { encode } from "./encode.js";
import {
  type Fields,
  fieldsOf,
  readCount,
  readInteger,
  readList,
  readOneOf,
  readOptional,
  readRunId,
  readText,
  readTime,
  refuse,
} from "./fields.js";
import { OPAQUE, PLAIN } from "./json-traits.js";
import { Ledger, type LedgerJSON } from "./ledger.js";
import { keptMetadata, METADATA_VALUE, wrongMetadata } from "./metadata.js";
import {
  type Answer,
  type GraphIdentity,
  type Metadata,
  noMetadata,
  type ParentLink,
  type PauseRequest,
  type Recovery,
  Results,
  type RunError,
  type RunStatus,
  type StateRecord,
  statuses,
  type Unfinished,
} from "./record.js";
import { isPlainObject, looksTagged, symbolOf } from "./shape.js";
import {
  type BegunJSON,
  DEFAULT_MAX_STEPS,
  decodeBegun,
  decodeStep,
  encodeBegun,
  encodeSteps,
  NewestLog,
  type StepJSON,
} from "./steps.js";

const breakpoints = ["before", "after"] as const;

/** The format that this version writes. A checkpoint in a newer format is rejected. */
const FORMAT = 1;

/** A complete State as JSON, with nothing that `JSON.stringify` would change. */
export interface StateJSON {
  /** The version of this format. */
  readonly waymark: number;
  /** See {@link State.runId}. */
  readonly runId: string;
  /** See {@link State.checkpointId}. */
  readonly checkpointId: string;
  /** See {@link State.sequence}. */
  readonly sequence: number;
  /** See {@link State.checkpointNode}. */
  readonly checkpointNode: string;
  /** See {@link State.timestamp}. */
  readonly timestamp: string;
  /** See {@link State.step}. */
  readonly step: number;
  /** See {@link State.status}. */
  readonly status: RunStatus;
  /** See {@link State.reason}. */
  readonly reason: string;
  /** See {@link State.startedAt}. */
  readonly startedAt: string;
  /** See {@link State.savedAt}. */
  readonly savedAt: string;
  /** See {@link State.phase}. */
  readonly phase: string;
  /** See {@link State.nextNode}. */
  readonly nextNode?: string;
  /** See {@link State.metadata}. */
  readonly metadata?: Metadata;
  /** See {@link State.error}. */
  readonly error?: RunError;
  /** See {@link State.parent}. */
  readonly parent?: ParentLink;
  /** See {@link State.graph}. */
  readonly graph?: GraphIdentity;
  /** The metadata keys that come from the graph. */
  readonly inherited?: readonly string[];
  /** See {@link State.visits}. */
  readonly visits: Visits;
  /** How many attempts each node took and how long it worked, by node; see {@link State.totals}. */
  readonly work?: Readonly<Record<string, NodeWork>>;
  /** See {@link State.steps}. */
  readonly steps?: readonly StepJSON[];
  /** See {@link State.ledger}. */
  readonly ledger?: LedgerJSON;
  /** See {@link State.pauses}. */
  readonly pauses?: readonly unknown[];
  /** Answers that no pause has taken yet. */
  readonly answers?: readonly unknown[];
  /** What a node that has not completed has done so far. */
  readonly unfinished?: UnfinishedJSON;
  /** What is known about a node that has begun and not completed. */
  readonly begun?: BegunJSON;
  /** The tasks of a `dag` that have completed. */
  readonly tasks?: readonly string[];
  /** The sequence of the last rollback. */
  readonly rollback?: number;
  /** How often the run was recovered at startup without progress. */
  readonly recovery?: RecoveryJSON;
  /** See {@link State.resumes}. */
  readonly resumes?: number;
  /** See {@link State.crashes}. */
  readonly crashes?: number;
  /** The data, with tags where JSON has no type for a value. */
  readonly data: unknown;
}

/** What a node that has not completed has done so far, as JSON. */
export interface UnfinishedJSON {
  /** The node. */
  readonly node: string;
  /** Its results so far, by key, with tags where JSON has no type for a value. */
  readonly results: unknown;
  /** How many results it has recorded in total; the number of `results` if absent. */
  readonly count?: number;
}

/** How often a run was recovered at startup without progress, as JSON. */
export interface RecoveryJSON {
  /** How often. */
  readonly attempts: number;
  /** How many nodes had completed. */
  readonly step: number;
  /** How many results its unfinished node had recorded. */
  readonly results: number;
}

/** The fields of a State that are in a record's unencrypted header. */
type InHeader =
  | "runId"
  | "checkpointId"
  | "sequence"
  | "checkpointNode"
  | "timestamp"
  | "step"
  | "status"
  | "reason"
  | "startedAt"
  | "savedAt"
  | "phase"
  | "nextNode"
  | "metadata";

/** The fields of a State that can be large, or that rarely change from one checkpoint to the next. */
export type BodyJSON = Omit<StateJSON, InHeader>;

/** A State's record as JSON. */
export function encodeState(record: StateRecord): StateJSON {
  const { data, identity, progress, saved } = record;
  const { nextNode } = progress;
  const { metadata } = identity;
  const header = {
    waymark: FORMAT,
    runId: identity.runId,
    checkpointId: saved.checkpointId,
    sequence: saved.sequence,
    checkpointNode: progress.checkpointNode,
    timestamp: progress.timestamp,
    step: progress.step,
    status: progress.status,
    reason: progress.reason,
    startedAt: identity.startedAt,
    savedAt: saved.savedAt,
    phase: progress.phase,
    ...(nextNode !== undefined && { nextNode }),
    ...(metadata !== noMetadata && { metadata }),
  };
  return encodeBody(record, isPlainData(record) ? data : encode(data, "data"), header);
}

/** Whether JSON text holds the data exactly, without tags. */
export function isPlainData({ data, traits }: StateRecord): boolean {
  return traits === PLAIN && !looksTagged(Object.keys(data)) && symbolOf(data) === undefined;
}

/** The same, added to the caller's header; the data must be JSON already. */
export function encodeBody<T extends { readonly waymark: number }>(
  { identity, progress }: StateRecord,
  data: unknown,
  header: T = { waymark: FORMAT } as T,
): T & BodyJSON {
  const { parent, graph, inherited } = identity;
  const { error, counts, steps, pauses, answers, unfinished, begun, tasks, rollback } = progress;
  const { ledger, recovery, resumes, crashes } = progress;
  const body: { -readonly [K in keyof BodyJSON]?: BodyJSON[K] } = header;
  if (error !== undefined) body.error = error;
  if (parent !== undefined) body.parent = parent;
  if (graph !== undefined) body.graph = graph;
  if (inherited.length > 0) body.inherited = inherited;
  body.visits = counts.visits();
  if (counts.hasWork) body.work = counts.work();
  if (!steps.isEmpty) body.steps = encodeSteps(steps);
  if (!ledger.isEmpty) body.ledger = ledger.toJSON();
  if (pauses.length > 0) body.pauses = pauses.map(encodePause);
  if (answers.length > 0) body.answers = answers.map(encodeAnswer);
  if (unfinished !== undefined) body.unfinished = encodeUnfinished(unfinished);
  if (begun !== undefined) body.begun = encodeBegun(begun);
  if (tasks.length > 0) body.tasks = tasks;
  if (rollback > 0) body.rollback = rollback;
  if (recovery !== undefined) body.recovery = recovery;
  if (resumes > 0) body.resumes = resumes;
  if (crashes > 0) body.crashes = crashes;
  body.data = data;
  return body as T & BodyJSON;
}

function encodeUnfinished({ node, results, count }: Unfinished): UnfinishedJSON {
  return { node, results: encode(Object.fromEntries(results.byKey()), "results"), count };
}

function encodePause(pause: PauseRequest): unknown {
  const { ask, schema, onTimeout } = pause;
  if (ask === undefined && schema === undefined && onTimeout === undefined) return pause;
  return {
    ...pause,
    ...(ask !== undefined && { ask: encode(ask, "ask") }),
    ...(schema !== undefined && { schema: encode(schema, "schema") }),
    ...(onTimeout !== undefined && { onTimeout: encode(onTimeout, "onTimeout") }),
  };
}

function encodeAnswer({ name, value }: Answer): unknown {
  return { name, value: encode(value, "value") };
}

/**
 * Restores a State's record from JSON, checking every field. It mutates the tree.
 *
 * @throws SerializationError that names what is missing or wrong.
 */
export function decodeState(json: unknown): StateRecord {
  const fields = fieldsOf(json, "state");
  const format = readInteger(fields, "waymark", "state", 1);
  if (format > FORMAT) {
    throw new SerializationError(
      "state.waymark",
      `is ${format}: a newer waymark wrote it, this one reads up to ${FORMAT}`,
    );
  }
  const { value, traits } = decode(fields.data, "data");
  if (typeof value !== "object" || value === null || !isPlainObject(value)) {
    return refuse(value, "state.data", "an object");
  }
  return {
    data: value,
    traits,
    identity: {
      runId: readRunId(fields, "runId", "state"),
      parent: readOptional(fields, "parent", "state", decodeParent),
      graph: readOptional(fields, "graph", "state", decodeGraph),
      startedAt: readTime(fields, "startedAt", "state"),
      metadata: decodeMetadata(fields.metadata),
      inherited: decodeTexts(fields.inherited, "state.inherited"),
    },
    progress: {
      checkpointNode: readText(fields, "checkpointNode", "state"),
      phase: readText(fields, "phase", "state"),
      nextNode: fields.nextNode === undefined ? undefined : readText(fields, "nextNode", "state"),
      timestamp: readTime(fields, "timestamp", "state"),
      step: readInteger(fields, "step", "state", 0),
      status: readOneOf(fields, "status", "state", statuses),
      error: readOptional(fields, "error", "state", decodeError),
      reason: readText(fields, "reason", "state"),
      counts: decodeCounts(fields),
      steps: NewestLog.of(readList(fields, "steps", "state", decodeStep), DEFAULT_MAX_STEPS),
      pauses: readList(fields, "pauses", "state", decodePause),
      answers: readList(fields, "answers", "state", decodeAnswer),
      unfinished: readOptional(fields, "unfinished", "state", decodeUnfinished),
      begun: readOptional(fields, "begun", "state", decodeBegun),
      tasks: decodeTexts(fields.tasks, "state.tasks"),
      rollback: readCount(fields, "rollback", "state"),
      recovery: readOptional(fields, "recovery", "state", decodeRecovery),
      resumes: readCount(fields, "resumes", "state"),
      crashes: readCount(fields, "crashes", "state"),
      ledger: fields.ledger === undefined ? Ledger.empty : Ledger.fromTree(fields.ledger),
    },
    saved: {
      checkpointId: readText(fields, "checkpointId", "state"),
      sequence: readInteger(fields, "sequence", "state", 0),
      savedAt: fields.savedAt === "" ? "" : readTime(fields, "savedAt", "state"),
      bytes: undefined,
    },
  };
}

function decodeParent(fields: Fields, path: string): ParentLink {
  return {
    runId: readRunId(fields, "runId", path),
    checkpointId: readText(fields, "checkpointId", path),
  };
}

function decodeGraph(fields: Fields, path: string): GraphIdentity {
  return {
    name: readText(fields, "name", path),
    version: readInteger(fields, "version", path, 0),
    fingerprint: readText(fields, "fingerprint", path),
  };
}

function decodeError(fields: Fields, path: string): RunError {
  return {
    name: readText(fields, "name", path),
    message: readText(fields, "message", path),
    node: readText(fields, "node", path),
    ...(fields.stack !== undefined && { stack: readText(fields, "stack", path) }),
  };
}

function decodeMetadata(value: unknown): Metadata {
  if (value === undefined) return noMetadata;
  const metadata = fieldsOf(value, "state.metadata");
  const wrong = wrongMetadata(metadata);
  if (wrong !== undefined)
    return refuse(metadata[wrong], `state.metadata.${wrong}`, METADATA_VALUE);
  return keptMetadata(metadata as Metadata);
}

function decodeCounts(fields: Fields): Counts {
  const visits = fieldsOf(fields.visits, "state.visits");
  const work = fields.work === undefined ? {} : fieldsOf(fields.work, "state.work");
  return Counts.of(
    Object.keys(visits).map((node): NodeCount => {
      const count = readInteger(visits, node, "state.visits", 0);
      if (!Object.hasOwn(work, node)) return [node, count, 0, 0];
      const path = `state.work.${node}`;
      const done = fieldsOf(work[node], path);
      const attempts = readInteger(done, "attempts", path, 0);
      return [node, count, attempts, readInteger(done, "durationMs", path, 0)];
    }),
  );
}

function decodePause(fields: Fields, path: string): PauseRequest {
  const { ask, into, breakpoint, until, schema, deadline, onTimeout, refused } = fields;
  return {
    name: readText(fields, "name", path),
    reason: readText(fields, "reason", path),
    ...(ask !== undefined && { ask: decode(ask, "ask").value }),
    ...(into !== undefined && { into: readText(fields, "into", path) }),
    ...(breakpoint !== undefined && {
      breakpoint: readOneOf(fields, "breakpoint", path, breakpoints),
    }),
    ...(until !== undefined && { until: readText(fields, "until", path) }),
    ...(schema !== undefined && { schema: readObject(schema, `${path}.schema`) }),
    ...(deadline !== undefined && { deadline: readTime(fields, "deadline", path) }),
    ...(onTimeout !== undefined && { onTimeout: readObject(onTimeout, `${path}.onTimeout`) }),
    ...(refused !== undefined && { refused: readText(fields, "refused", path) }),
  };
}

function readObject(value: unknown, path: string): object {
  const found = decode(value, path).value;
  return typeof found === "object" && found !== null ? found : refuse(found, path, "an object");
}

function decodeAnswer(fields: Fields, path: string): Answer {
  return {
    name: readText(fields, "name", path),
    value: decode(fields.value, "value").value,
  };
}

function decodeUnfinished(fields: Fields, path: string): Unfinished {
  const { value, traits } = decode(fields.results, "results");
  const results = Results.of(Object.entries(fieldsOf(value, `${path}.results`)));
  return {
    node: readText(fields, "node", path),
    results,
    count: fields.count === undefined ? results.length : readInteger(fields, "count", path, 0),
    opaque: (traits & OPAQUE) !== 0,
  };
}

function decodeTexts(value: unknown, path: string): readonly string[] {
  if (value === undefined) return noTexts;
  if (!Array.isArray(value)) return refuse(value, path, "an array of strings");
  const wrong = value.findIndex((text) => typeof text !== "string");
  if (wrong >= 0) return refuse(value[wrong], `${path}[${wrong}]`, "a string");
  return Object.freeze(value as string[]);
}

const noTexts: readonly string[] = Object.freeze([]);

function decodeRecovery(fields: Fields, path: string): Recovery {
  return {
    attempts: readInteger(fields, "attempts", path, 0),
    step: readInteger(fields, "step", path, 0),
    results: readInteger(fields, "results", path, 0),
  };
}
