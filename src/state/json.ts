import { SerializationError } from "../errors.js";
import { decode } from "./decode.js";
import { encode } from "./encode.js";
import {
  type Fields,
  fieldsOf,
  integer,
  list,
  oneOf,
  optional,
  refuse,
  runId,
  text,
  time,
} from "./fields.js";
import { Ledger, type LedgerJSON } from "./ledger.js";
import {
  type GraphIdentity,
  type ParentLink,
  type PauseRequest,
  type Recovery,
  Results,
  type RunError,
  type RunStatus,
  type StateFields,
  statuses,
  type Unfinished,
  VisitCounts,
  type Visits,
} from "./record.js";
import { isPlainObject, looksTagged, symbolOf } from "./shape.js";
import { OPAQUE, PLAIN } from "./traits.js";

const breakpoints = ["before", "after"] as const;

/** The format that this version writes. A checkpoint of a higher one is refused. */
const FORMAT = 1;

/** A State as JSON: all of it, and nothing that `JSON.stringify` would change. */
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
  /** See {@link State.error}. */
  readonly error?: RunError;
  /** See {@link State.parent}. */
  readonly parent?: ParentLink;
  /** See {@link State.graph}. */
  readonly graph?: GraphIdentity;
  /** See {@link State.visits}. */
  readonly visits: Visits;
  /** See {@link State.ledger}. */
  readonly ledger?: LedgerJSON;
  /** See {@link State.pauses}. */
  readonly pauses?: readonly unknown[];
  /** What a node that has not completed has done so far. */
  readonly unfinished?: UnfinishedJSON;
  /** How often the run was recovered at startup and got no further. */
  readonly recovery?: RecoveryJSON;
  /** The data, with tags where JSON has no type for a value. */
  readonly data: unknown;
}

/** What a node that has not completed has done so far, as JSON. */
export interface UnfinishedJSON {
  /** The node. */
  readonly node: string;
  /** What it must not do again, by key, with tags where JSON has no type for a value. */
  readonly results: unknown;
  /** How many results it has got in all; where it is missing, as many as there are. */
  readonly count?: number;
}

/** How often a run was recovered at startup and got no further, as JSON. */
export interface RecoveryJSON {
  /** How often. */
  readonly attempts: number;
  /** How many nodes had completed. */
  readonly step: number;
  /** How many results its unfinished node had got. */
  readonly results: number;
}

/** What of a State can be large, or is mostly the same from one checkpoint to the next. */
export type BodyJSON = Omit<
  StateJSON,
  | "runId"
  | "checkpointId"
  | "sequence"
  | "checkpointNode"
  | "timestamp"
  | "step"
  | "status"
  | "reason"
>;

/** A State's fields as JSON. */
export function encodeState(fields: StateFields): StateJSON {
  const { data, identity, progress, saved } = fields;
  const { checkpointNode, timestamp, step, status, reason } = progress;
  const { checkpointId, sequence } = saved;
  const header = {
    waymark: FORMAT,
    runId: identity.runId,
    checkpointId,
    sequence,
    checkpointNode,
    timestamp,
    step,
    status,
    reason,
  };
  return encodeBody(fields, isPlainData(fields) ? data : encode(data, "data"), header);
}

/** Whether JSON text holds the data exactly, just as it is. */
export function isPlainData({ data, traits }: StateFields): boolean {
  return traits === PLAIN && !looksTagged(Object.keys(data)) && symbolOf(data) === undefined;
}

/** The same after a header of the caller's; the data must be JSON already. */
export function encodeBody<T extends { readonly waymark: number }>(
  { identity, progress }: StateFields,
  data: unknown,
  header: T = { waymark: FORMAT } as T,
): T & BodyJSON {
  const { parent, graph } = identity;
  const { error, visits, pauses, unfinished, ledger, recovery } = progress;
  const body: { -readonly [K in keyof BodyJSON]?: BodyJSON[K] } = header;
  if (error !== undefined) body.error = error;
  if (parent !== undefined) body.parent = parent;
  if (graph !== undefined) body.graph = graph;
  body.visits = visits.byName();
  if (!ledger.isEmpty) body.ledger = ledger.toJSON();
  if (pauses.length > 0) body.pauses = pauses.map(encodePause);
  if (unfinished !== undefined) body.unfinished = encodeUnfinished(unfinished);
  if (recovery !== undefined) body.recovery = recovery;
  body.data = data;
  return body as T & BodyJSON;
}

function encodeUnfinished({ node, results, count }: Unfinished): UnfinishedJSON {
  return { node, results: encode(Object.fromEntries(results.byKey()), "results"), count };
}

function encodePause(pause: PauseRequest): unknown {
  return "ask" in pause ? { ...pause, ask: encode(pause.ask, "ask") } : pause;
}

/**
 * A State's fields out of JSON; every one is checked. It takes the tree over.
 *
 * @throws SerializationError that names what is missing or wrong.
 */
export function decodeState(json: unknown): StateFields {
  const fields = fieldsOf(json, "state");
  const format = integer(fields.waymark, "state.waymark", 1);
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
      runId: runId(fields.runId, "state.runId"),
      parent: optional(fields.parent, "state.parent", decodeParent),
      graph: optional(fields.graph, "state.graph", decodeGraph),
    },
    progress: {
      checkpointNode: text(fields.checkpointNode, "state.checkpointNode"),
      timestamp: time(fields.timestamp, "state.timestamp"),
      step: integer(fields.step, "state.step", 0),
      status: oneOf(fields.status, "state.status", statuses),
      error: optional(fields.error, "state.error", decodeError),
      reason: text(fields.reason, "state.reason"),
      visits: decodeVisits(fieldsOf(fields.visits, "state.visits")),
      pauses: list(fields.pauses, "state.pauses", decodePause),
      unfinished: optional(fields.unfinished, "state.unfinished", decodeUnfinished),
      recovery: optional(fields.recovery, "state.recovery", decodeRecovery),
      ledger: fields.ledger === undefined ? Ledger.empty : Ledger.fromTree(fields.ledger),
    },
    saved: {
      checkpointId: text(fields.checkpointId, "state.checkpointId"),
      sequence: integer(fields.sequence, "state.sequence", 0),
      bytes: undefined,
    },
  };
}

function decodeParent(fields: Fields, path: string): ParentLink {
  return {
    runId: runId(fields.runId, `${path}.runId`),
    checkpointId: text(fields.checkpointId, `${path}.checkpointId`),
  };
}

function decodeGraph(fields: Fields, path: string): GraphIdentity {
  return {
    name: text(fields.name, `${path}.name`),
    version: integer(fields.version, `${path}.version`, 0),
    fingerprint: text(fields.fingerprint, `${path}.fingerprint`),
  };
}

function decodeError(fields: Fields, path: string): RunError {
  return {
    name: text(fields.name, `${path}.name`),
    message: text(fields.message, `${path}.message`),
    node: text(fields.node, `${path}.node`),
  };
}

function decodeVisits(fields: Fields): VisitCounts {
  const names = Object.keys(fields);
  const counts = names.map((name) => integer(fields[name], `state.visits.${name}`, 0));
  return new VisitCounts(names, counts);
}

function decodePause(fields: Fields, path: string): PauseRequest {
  const { name, reason, ask, into, breakpoint, until } = fields;
  return {
    name: text(name, `${path}.name`),
    reason: text(reason, `${path}.reason`),
    ...(ask !== undefined && { ask: decode(ask, "ask").value }),
    ...(into !== undefined && { into: text(into, `${path}.into`) }),
    ...(breakpoint !== undefined && {
      breakpoint: oneOf(breakpoint, `${path}.breakpoint`, breakpoints),
    }),
    ...(until !== undefined && { until: text(until, `${path}.until`) }),
  };
}

function decodeUnfinished(fields: Fields, path: string): Unfinished {
  const { value, traits } = decode(fields.results, "results");
  const results = Results.of(Object.entries(fieldsOf(value, `${path}.results`)));
  return {
    node: text(fields.node, `${path}.node`),
    results,
    count: fields.count === undefined ? results.length : integer(fields.count, `${path}.count`, 0),
    opaque: (traits & OPAQUE) !== 0,
  };
}

function decodeRecovery(fields: Fields, path: string): Recovery {
  return {
    attempts: integer(fields.attempts, `${path}.attempts`, 0),
    step: integer(fields.step, `${path}.step`, 0),
    results: integer(fields.results, `${path}.results`, 0),
  };
}
