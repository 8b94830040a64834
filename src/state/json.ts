import { ConfigError, SerializationError, show } from "../errors.js";
import { decode } from "./decode.js";
import { encode } from "./encode.js";
import { Ledger, type LedgerJSON } from "./ledger.js";
import { isPlainObject, looksTagged, OPAQUE, PLAIN } from "./own.js";
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
import { checkRunId } from "./run-id.js";

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
}

/** How often a run was recovered at startup and got no further, as JSON. */
export interface RecoveryJSON {
  /** How often. */
  readonly attempts: number;
  /** How many nodes had completed. */
  readonly step: number;
  /** How many results its unfinished node had. */
  readonly results: number;
}

/** A State's fields as JSON. */
export function encodeState({ data, traits, identity, progress, saved }: StateFields): StateJSON {
  const { runId, parent, graph } = identity;
  const { checkpointNode, timestamp, step, status, reason, error, visits } = progress;
  const { pauses, unfinished, ledger, recovery } = progress;
  return {
    waymark: FORMAT,
    runId,
    checkpointId: saved.checkpointId,
    sequence: saved.sequence,
    checkpointNode,
    timestamp,
    step,
    status,
    reason,
    ...(error && { error }),
    ...(parent && { parent }),
    ...(graph && { graph }),
    visits: visits.byName(),
    ...(!ledger.isEmpty && { ledger: ledger.toJSON() }),
    ...(pauses.length > 0 && { pauses: pauses.map(encodePause) }),
    ...(unfinished && { unfinished: encodeUnfinished(unfinished) }),
    ...(recovery && { recovery }),
    data: traits === PLAIN && !looksTagged(Object.keys(data)) ? data : encode(data, "data"),
  };
}

function encodeUnfinished({ node, results }: Unfinished): UnfinishedJSON {
  return { node, results: encode(Object.fromEntries(results.byKey()), "results") };
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
  const fields = new Fields(json, "state");
  const format = fields.integer("waymark", 1);
  if (format > FORMAT) {
    throw new SerializationError(
      "state.waymark",
      `is ${format}: a newer waymark wrote it, this one reads up to ${FORMAT}`,
    );
  }
  const data = fields.object("data");
  const { value, traits } = decode(data, "data");
  if (typeof value !== "object" || value === null || !isPlainObject(value)) {
    throw new SerializationError("data", `wants an object, got ${show(value)}`);
  }
  const error = fields.optional("error", (inner) => ({
    name: inner.text("name"),
    message: inner.text("message"),
    node: inner.text("node"),
  }));
  const parent = fields.optional("parent", (inner) => ({
    runId: inner.runId("runId"),
    checkpointId: inner.text("checkpointId"),
  }));
  const graph = fields.optional("graph", (inner) => ({
    name: inner.text("name"),
    version: inner.integer("version", 0),
    fingerprint: inner.text("fingerprint"),
  }));
  const status = fields.oneOf("status", statuses);
  return {
    data: value,
    traits,
    identity: { runId: fields.runId("runId"), parent, graph },
    progress: {
      checkpointNode: fields.text("checkpointNode"),
      timestamp: fields.time("timestamp"),
      step: fields.integer("step", 0),
      status,
      error,
      reason: fields.text("reason"),
      visits: fields.counts("visits"),
      pauses: fields.list("pauses", decodePause),
      unfinished: fields.optional("unfinished", decodeUnfinished),
      recovery: fields.optional("recovery", decodeRecovery),
      ledger: fields.has("ledger") ? Ledger.fromTree(fields.any("ledger")) : Ledger.empty,
    },
    saved: {
      checkpointId: fields.text("checkpointId"),
      sequence: fields.integer("sequence", 0),
      bytes: undefined,
    },
  };
}

function decodePause(fields: Fields): PauseRequest {
  const [name, reason] = [fields.text("name"), fields.text("reason")];
  return {
    name,
    reason,
    ...(fields.has("ask") && { ask: decode(fields.any("ask"), "ask").value }),
    ...(fields.has("into") && { into: fields.text("into") }),
    ...(fields.has("breakpoint") && { breakpoint: fields.oneOf("breakpoint", breakpoints) }),
    ...(fields.has("until") && { until: fields.text("until") }),
  };
}

function decodeUnfinished(fields: Fields): Unfinished {
  const { value, traits } = decode(fields.object("results"), "results");
  const results = Results.of(Object.entries(value as object));
  return { node: fields.text("node"), results, opaque: (traits & OPAQUE) !== 0 };
}

function decodeRecovery(fields: Fields): Recovery {
  return {
    attempts: fields.integer("attempts", 0),
    step: fields.integer("step", 0),
    results: fields.integer("results", 0),
  };
}

const none: readonly never[] = Object.freeze([]);

/** Reads the fields of an untrusted object one by one. */
class Fields {
  readonly #object: Readonly<Record<string, unknown>>;
  readonly #path: string;

  constructor(value: unknown, path: string) {
    if (typeof value !== "object" || value === null || !isPlainObject(value)) {
      throw new SerializationError(path, `wants an object, got ${show(value)}`);
    }
    this.#object = value;
    this.#path = path;
  }

  text(key: string): string {
    const value = this.#get(key);
    return typeof value === "string" ? value : this.#refuse(key, "a string");
  }

  oneOf<T extends string>(key: string, choices: readonly T[]): T {
    const value = this.text(key);
    const found = choices.find((choice) => choice === value);
    return found ?? this.#refuse(key, `one of ${choices.join(", ")}`);
  }

  runId(key: string): string {
    try {
      return checkRunId(this.text(key));
    } catch (cause) {
      if (!(cause instanceof ConfigError)) throw cause;
      throw new SerializationError(`${this.#path}.${key}`, `can't be one: ${cause.message}`, {
        cause,
      });
    }
  }

  time(key: string): string {
    const value = this.text(key);
    return Number.isNaN(Date.parse(value)) ? this.#refuse(key, "a time in ISO 8601") : value;
  }

  integer(key: string, min: number): number {
    const value = this.#get(key);
    return typeof value === "number" && Number.isSafeInteger(value) && value >= min
      ? value
      : this.#refuse(key, `a whole number from ${min} up`);
  }

  object(key: string): object {
    const value = this.#get(key);
    return typeof value === "object" && value !== null ? value : this.#refuse(key, "an object");
  }

  optional<T>(key: string, read: (inner: Fields) => T): T | undefined {
    const value = this.#get(key);
    return value === undefined
      ? undefined
      : Object.freeze(read(new Fields(value, `${this.#path}.${key}`)));
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#object, key);
  }

  any(key: string): unknown {
    return this.#get(key);
  }

  list<T>(key: string, read: (inner: Fields) => T): readonly T[] {
    const value = this.#get(key);
    if (value === undefined) return none;
    if (!Array.isArray(value)) return this.#refuse(key, "an array");
    return Object.freeze(
      value.map((item, index) =>
        Object.freeze(read(new Fields(item, `${this.#path}.${key}[${index}]`))),
      ),
    );
  }

  counts(key: string): VisitCounts {
    const inner = new Fields(this.object(key), `${this.#path}.${key}`);
    const names = Object.keys(inner.#object);
    return new VisitCounts(
      names,
      names.map((name) => inner.integer(name, 0)),
    );
  }

  #get(key: string): unknown {
    const value = this.#object[key];
    return value === undefined || Object.hasOwn(this.#object, key) ? value : undefined;
  }

  #refuse(key: string, wants: string): never {
    throw new SerializationError(
      `${this.#path}.${key}`,
      `wants ${wants}, got ${show(this.#get(key))}`,
    );
  }
}
