import { isoNow } from "../clock.js";
import { type CountsJSON, counts, noCounts } from "./counts.js";
import { decode } from "./decode.js";
import { encode } from "./encode.js";
import { OPAQUE } from "./json-traits.js";
import {
  count,
  type DefaultKind,
  fieldsOf,
  type JSONValueOf,
  type Kind,
  list,
  name,
  names,
  object,
  objectNamed,
  oneOf,
  optional,
  or,
  runId,
  type SomeKind,
  text,
  texts,
  time,
  timeOrNone,
  type ValueOf,
  valueNamed,
  word,
} from "./kinds.js";
import { type LedgerJSON, ledgerText } from "./ledger/json.js";
import { Ledger } from "./ledger.js";
import { type Metadata, metadata, noMetadata } from "./metadata.js";
import { begun, noSteps, stepLog } from "./steps.js";

/** What a run is doing, or how it ended. */
export type RunStatus = "pending" | "in_progress" | "paused" | "completed" | "failed";

/** Every status a run can have. */
export const statuses: readonly RunStatus[] = [
  "pending",
  "in_progress",
  "paused",
  "completed",
  "failed",
];

/** What made a run fail. */
export interface RunError {
  /** The name of the error, such as `TypeError`. */
  readonly name: string;
  /** Its message; if longer, the first 4,000 characters and how many follow. */
  readonly message: string;
  /** The node that threw it. */
  readonly node: string;
  /** Where it was thrown; cut if it is long. */
  readonly stack?: string;
}

/** The graph that a State was last run by. */
export interface GraphIdentity {
  /** The graph's name. */
  readonly name: string;
  /** The schema version of its data. */
  readonly version: number;
  /** A hash of its nodes and edges. */
  readonly fingerprint: string;
}

/** The run and checkpoint that a run was forked from. */
export interface ParentLink {
  /** The run it was forked from. */
  readonly runId: string;
  /** The checkpoint it was forked at. */
  readonly checkpointId: string;
}

/** Something that a paused run is waiting for. */
export interface PauseRequest {
  /** Distinguishes several pauses; `""` for a node's only one. */
  readonly name: string;
  /** Why the run waits. */
  readonly reason: string;
  /** What a person is asked. If set, the run can't continue without an answer. */
  readonly ask?: unknown;
  /** The key of the data that receives the input; without it the input is merged into the data. */
  readonly into?: string;
  /** Set for a breakpoint of the config, which takes no input: before or after the node. */
  readonly breakpoint?: "before" | "after";
  /** When the run resumes by itself, ISO 8601, if it is only waiting for that. */
  readonly until?: string;
  /** The JSON Schema of the answer, if the pause has a schema whose library can produce one. */
  readonly schema?: object;
  /** When it times out, ISO 8601, if it has a timeout. */
  readonly deadline?: string;
  /** What is merged into the data if nobody answers by then. */
  readonly onTimeout?: object;
  /** Why the last answer was rejected. */
  readonly refused?: string;
}

/** An answer that arrived before its pause, or before the run was resumed. */
export interface Answer {
  /** The name of the pause. */
  readonly name: string;
  readonly value: unknown;
}

/** How often a run was recovered at startup without progress. */
export interface Recovery {
  /** How often. */
  readonly attempts: number;
  /** How many nodes had completed then. */
  readonly step: number;
  /** How many results its unfinished node had recorded then. */
  readonly results: number;
}

/** What a node that has not completed has done so far. */
export interface Unfinished {
  readonly node: string;
  /** The results of work that must not be repeated, by key. */
  readonly results: Results;
  /** How many results it has recorded in total, including those removed since; a replacement does not count. */
  readonly count: number;
  /** Whether a save must walk the results; see `json-traits.ts`. */
  readonly opaque: boolean;
}

/** No metadata from a graph. */
const noneInherited: readonly string[] = Object.freeze([]);

/** No pauses. */
export const noPauses: readonly PauseRequest[] = Object.freeze([]);

/** No pending answers. */
const noAnswers: readonly Answer[] = Object.freeze([]);

/** No completed tasks. */
const noTasks: readonly string[] = Object.freeze([]);

type Result = readonly [key: string, value: unknown];

/** Marks a removed result in the log. */
const gone = Symbol("gone");

/**
 * The results of a node, by key. A node may have a hundred thousand of them and each save captures them, so
 * capturing is free.
 */
export class Results {
  /**
   * Append-only, so that it can be shared by instances of different length. A later entry replaces an earlier
   * one with the same key.
   */
  readonly #log: Result[];
  readonly #length: number;

  private constructor(log: Result[]) {
    this.#log = log;
    this.#length = log.length;
  }

  static of(results: Iterable<Result>): Results {
    return new Results([...results]);
  }

  /** The number of entries, including replaced ones. */
  get length(): number {
    return this.#length;
  }

  with(key: string, value: unknown): Results {
    const isNewest = this.#log.length === this.#length;
    const log = isNewest ? this.#log : this.#log.slice(0, this.#length);
    log.push([key, value]);
    return new Results(log);
  }

  without(key: string): Results {
    return this.with(key, gone);
  }

  byKey(): Map<string, unknown> {
    const known = new Map(this.#log.slice(0, this.#length));
    for (const [key, value] of known) if (value === gone) known.delete(key);
    return known;
  }
}

const graph = object<GraphIdentity>({ name, version: count, fingerprint: name });

/** The effective settings of a run, by name. */
export type RunConfig = Metadata;

const config: Kind<RunConfig> = { ...metadata, userText: "fixed" };

const parent = object<ParentLink>({ runId, checkpointId: name });

const error = object<RunError>({
  name: word,
  message: text,
  node: name,
  stack: optional(text),
});

const bareError = object<Omit<RunError, "stack">>({ name: word, message: text, node: name });

const pause = object<PauseRequest, unknown>({
  name,
  reason: text,
  ask: optional(valueNamed("ask")),
  into: optional(name),
  breakpoint: optional(oneOf(["before", "after"])),
  until: optional(time),
  schema: optional(objectNamed("schema")),
  deadline: optional(time),
  onTimeout: optional(objectNamed("onTimeout")),
  refused: optional(text),
});

const answer = object<Answer, unknown>({ name, value: valueNamed("value") });

const recovery = object<Recovery>({ attempts: count, step: count, results: count });

/** What a node that has not completed has done so far, as JSON. */
export interface UnfinishedJSON {
  /** The node. */
  readonly node: string;
  /** Its results so far, by key, with tags where JSON has no type for a value. */
  readonly results: unknown;
  /** How many results it has recorded in total; the number of `results` if absent. */
  readonly count?: number;
}

const unfinished: Kind<Unfinished, UnfinishedJSON> = {
  // A resume finds a result by its key.
  userText: {
    fields: { node: "fixed", results: { each: "own", fixedKeys: true }, count: "fixed" },
  },
  read: (json, path, key) => {
    const at = `${path}.${key}`;
    const fields = fieldsOf(json, at);
    const { value, traits } = decode(fields.results, "results");
    const results = Results.of(Object.entries(fieldsOf(value, `${at}.results`)));
    const given = fields.count;
    return Object.freeze({
      node: name.read(fields.node, at, "node"),
      results,
      count: given === undefined ? results.length : count.read(given, at, "count"),
      opaque: (traits & OPAQUE) !== 0,
    });
  },
  write: ({ node, results, count }) => ({
    node,
    results: encode(Object.fromEntries(results.byKey()), "results"),
    count,
  }),
};

const ledger: Kind<Ledger, LedgerJSON> = {
  userText: ledgerText,
  read: (json) => Ledger.fromTree(json),
  write: (given) => given.toJSON(),
};

/** Where else than in the record of a State a field is listed. */
interface Listing<T = never> {
  /** In the plaintext header of a stored record. */
  readonly header?: true;
  /** In `history`. */
  readonly history?: true;
  /** In `runs`. */
  readonly runs?: true;
  /** Whether it is in the JSON of a State even if it is empty. */
  readonly isWritten?: true;
  /** Its name there, if it is another one. */
  readonly as?: keyof ListedAs;
  /** What of it is there, if not all: then all of it is in the body of a stored record. */
  readonly brief?: { readonly kind: SomeKind; of(value: T): unknown };
}

/** A field of a State's record. */
type Field<K extends SomeKind, L> = L & { readonly kind: K };

function field<K extends SomeKind, const L extends Listing<ValueOf<K>> = Record<never, never>>(
  kind: K,
  listing?: L,
): Field<K, L> {
  return { kind, ...listing } as Field<K, L>;
}

const everywhere = { header: true, history: true, runs: true } as const;
const inHistory = { header: true, history: true } as const;
const inRuns = { header: true, runs: true } as const;

/*
 * Everything that a record holds: from these tables follow the types of a record, its JSON, the header of a stored
 * record, `history` and `runs`, the description of the studio's API, and what is redacted. A field whose kind has an
 * empty value is not written if it is empty.
 */

/** What stays the same for a whole run. */
const identity = {
  /** Names the run. */
  runId: field(runId, inRuns),
  /** See {@link State.parent}. */
  parent: field(or(parent, undefined)),
  /** The graph's name; `""` for a State that no graph has run. */
  graph: field(or(graph, undefined), { ...inRuns, brief: { kind: name, of: nameOf } }),
  /** How the graph that ran it last saves and guards it; no secrets. */
  config: field(or(config, noMetadata)),
  /** When the run began, ISO 8601. */
  startedAt: field(time, inRuns),
  /** The run's metadata, such as the commit that saved it if the graph has `metadata: environment()`. */
  metadata: field(or(metadata, noMetadata), everywhere),
  /** The metadata keys that come from the graph; the others are the run's own. */
  inherited: field(or(texts, noneInherited)),
};

/** The progress of a run. Changes with every completed node. */
const progress = {
  /** The last node that completed; `""` before the first. */
  checkpointNode: field(name, { ...everywhere, as: "node" }),
  /** The phase of that node; `""` for none. */
  phase: field(or(name, ""), { ...everywhere, isWritten: true }),
  /** Where a resume would continue, as known at the last save. */
  nextNode: field(or(name, undefined), inRuns),
  /** When that node completed, ISO 8601. */
  timestamp: field(time, everywhere),
  /** The number of nodes that had completed. */
  step: field(count, everywhere),
  /** What the run is doing, or how it ended. */
  status: field(oneOf(statuses), everywhere),
  /** The error that made the run fail; absent in an encrypted store. */
  error: field(or(error, undefined), {
    ...inRuns,
    brief: { kind: or(bareError, undefined), of: bare },
  }),
  /** Why it was saved. */
  reason: field(word, inHistory),
  counts: field(counts),
  /** See {@link State.steps}. */
  steps: field(or(stepLog, noSteps, (log) => log.isEmpty)),
  /** See {@link State.pauses}. */
  pauses: field(or(list(pause), noPauses)),
  /** Answers that no pause has taken yet, oldest first. */
  answers: field(or(list(answer), noAnswers)),
  /** What a node that has not completed has done so far. */
  unfinished: field(or(unfinished, undefined)),
  /** What is known about the next step if an earlier process has begun it. */
  begun: field(or(begun, undefined)),
  /** The tasks of a `dag` that have completed, oldest first; a resume of a changed `dag` relies on it. */
  tasks: field(or(names, noTasks)),
  /** The sequence of the last rollback; 0 if there was none. Part of each idempotency key. */
  rollback: field(or(count, 0)),
  /** How often the run was recovered at startup without progress. */
  recovery: field(or(recovery, undefined)),
  /** How often the run was resumed. */
  resumes: field(or(count, 0)),
  /** How often the run was resumed after its process had died. */
  crashes: field(or(count, 0)),
  /** See {@link State.ledger}. */
  ledger: field(or(ledger, Ledger.empty, (given) => given.isEmpty)),
};

/** The record that a State was last saved as, or loaded from. */
const saved = {
  /** The id of that one record. */
  checkpointId: field(name, inHistory),
  /** Its position in the run's history, starting at 1; 0 before the first save. */
  sequence: field(count, inHistory),
  /** When it was saved, ISO 8601; `""` before the first save. */
  savedAt: field(timeOrNone, everywhere),
};

/** All fields, by the part of the record that they are in. */
const parts = { identity, progress, saved };

type Parts = typeof parts;

/** All fields by name. */
type Fields = Parts["identity"] & Parts["progress"] & Parts["saved"];

type Row = { readonly kind: SomeKind };

type ValuesOf<F extends Readonly<Record<string, Row>>> = {
  readonly [K in keyof F]: ValueOf<F[K]["kind"]>;
};

/** What stays the same while a graph works on a run. */
export interface Identity extends ValuesOf<Parts["identity"]> {}

/** The progress of a run. */
export interface Progress extends ValuesOf<Parts["progress"]> {}

/** The record that a State was last saved as, or loaded from. */
export interface Saved extends ValuesOf<Parts["saved"]> {
  /** Its size in bytes, if the store knows it. */
  readonly bytes?: number | undefined;
}

/** A record that a store has just saved; `savedAt` is now by default. */
export type SavedNow = Omit<Saved, "savedAt"> & Partial<Pick<Saved, "savedAt">>;

/** Everything that a State consists of, except its observer. */
export interface StateRecord {
  /** Deeply frozen. */
  readonly data: object;
  /** See `json-traits.ts`. */
  readonly traits: number;
  readonly identity: Identity;
  readonly progress: Progress;
  readonly saved: Saved;
}

/** Whether a field is absent from JSON if it is empty. */
type IsDefault<F extends Row> = F["kind"] extends { readonly empty: unknown } ? true : false;

type IsOptional<F extends Row> = F extends { readonly isWritten: true } ? false : IsDefault<F>;

/** The fields of a record as JSON. */
export type FieldsJSON = {
  readonly [K in keyof Fields as K extends "counts"
    ? never
    : IsOptional<Fields[K]> extends true
      ? never
      : K]: JSONValueOf<Fields[K]["kind"]>;
} & {
  readonly [K in keyof Fields as IsOptional<Fields[K]> extends true ? K : never]?: JSONValueOf<
    Fields[K]["kind"]
  >;
} & CountsJSON;

/** The names of the fields that a stored record has only in its header. */
export type HeaderKey = {
  [K in keyof Fields]: Fields[K] extends { readonly header: true }
    ? Fields[K] extends { readonly brief: unknown }
      ? never
      : K
    : never;
}[keyof Fields];

/** A field as it is listed. */
type Brief<F extends Row> = F extends {
  readonly brief: { readonly kind: infer K extends SomeKind };
}
  ? ValueOf<K>
  : ValueOf<F["kind"]>;

/** The fields that are listed, all of each. */
export type ListedWhole = {
  readonly [K in keyof Fields as Fields[K] extends { readonly header: true } ? K : never]: ValueOf<
    Fields[K]["kind"]
  >;
};

/** What is listed under another name. */
interface ListedAs {
  /** The last node that completed; `""` before the first. */
  readonly node: string;
}

type Where = "header" | "history" | "runs";

/** Whether a field may be missing where it is listed: a header leaves out what is empty. */
type IsMissing<F extends Row, W extends Where> =
  undefined extends Brief<F>
    ? true
    : W extends "header"
      ? F extends { readonly brief: unknown }
        ? false
        : IsDefault<F>
      : false;

/** A key that is listed under its own name. It is only filtered: under a new one it would lose its documentation. */
type KeyIn<K extends keyof Fields, W extends Where, M extends boolean> =
  Fields[K] extends Readonly<Record<W, true>>
    ? Fields[K] extends { readonly as: string }
      ? never
      : IsMissing<Fields[K], W> extends M
        ? K
        : never
    : never;

/** The fields that are listed somewhere. */
export type Listed<W extends Where> = {
  readonly [K in keyof Fields as KeyIn<K, W, false>]: Brief<Fields[K]>;
} & {
  readonly [K in keyof Fields as KeyIn<K, W, true>]?: Brief<Fields[K]> | undefined;
} & ListedAs;

type AnyKind = Kind<unknown, unknown> & Partial<DefaultKind<unknown, unknown>>;

/** A field, its place in a record, and where it is listed. All have one shape, which makes walking them fast. */
class FieldOfRecord {
  readonly part: keyof Parts;
  readonly key: string;
  /** Its name where it is listed. */
  readonly as: string;
  readonly kind: AnyKind;
  /** What it is where it is listed. */
  readonly listedKind: AnyKind;
  readonly isWritten: boolean;
  readonly brief: Listing<unknown>["brief"];
  readonly empty: unknown;
  readonly hasEmpty: boolean;
  readonly isEmpty: ((value: unknown) => boolean) | undefined;
  readonly write: ((value: unknown) => unknown) | undefined;
  readonly isSpread: boolean;
  /** Whether a stored record has it only in its header. */
  readonly isInHeader: boolean;

  constructor(part: keyof Parts, key: string, { kind, ...listing }: Row & Listing<unknown>) {
    const given: AnyKind = kind as AnyKind;
    this.part = part;
    this.key = key;
    this.as = listing.as ?? key;
    this.kind = given;
    this.listedKind = (listing.brief?.kind ?? kind) as AnyKind;
    this.isWritten = listing.isWritten ?? false;
    this.brief = listing.brief;
    this.empty = given.empty;
    this.hasEmpty = "empty" in given;
    this.isEmpty = given.isEmpty;
    this.write = given.write;
    this.isSpread = given.isSpread ?? false;
    this.isInHeader = listing.header === true && listing.brief === undefined;
  }

  /** Its value in a record. */
  of(record: StateRecord): unknown {
    return (record[this.part] as unknown as Readonly<Record<string, unknown>>)[this.key];
  }

  /** Whether a value of it need not be written. */
  leavesOut(value: unknown): boolean {
    return this.hasEmpty && (value === this.empty || this.isEmpty?.(value) === true);
  }
}

const rows = Object.entries(parts).flatMap(([part, some]) =>
  Object.entries<Row & Listing<unknown>>(some).map(([key, row]) => ({
    row,
    field: new FieldOfRecord(part as keyof Parts, key, row),
  })),
);

/** All fields, in the order in which they are written. */
export const fields: readonly FieldOfRecord[] = rows.map(({ field }) => field);

/** The fields that are listed somewhere. */
export const listedIn: Readonly<Record<Where, readonly FieldOfRecord[]>> = {
  header: rows.filter(({ row }) => row.header).map(({ field }) => field),
  history: rows.filter(({ row }) => row.history).map(({ field }) => field),
  runs: rows.filter(({ row }) => row.runs).map(({ field }) => field),
};

/** What is listed of a State. */
export function listed<W extends Where>(record: StateRecord, where: W): Listed<W> {
  const isHeader = where === "header";
  const made: Record<string, unknown> = {};
  for (const field of listedIn[where]) {
    const { brief } = field;
    const value = field.of(record);
    const shown = brief === undefined ? value : brief.of(value);
    const isLeftOut = isHeader && brief === undefined && field.leavesOut(value);
    if (shown !== undefined && !isLeftOut) made[field.as] = shown;
  }
  return made as Listed<W>;
}

/** What is listed of a stored record, whose header leaves out what is empty. */
export function listedOf<W extends Where>(header: Listed<"header">, where: W): Listed<W> {
  const made: Record<string, unknown> = {};
  for (const { as, empty } of listedIn[where]) {
    const value: unknown = Reflect.get(header, as) ?? empty;
    if (value !== undefined) made[as] = value;
  }
  return made as Listed<W>;
}

/** The identity of a run that begins now. */
export function newIdentity(runId: string, metadata: Metadata): Identity {
  const [parent, graph, config, inherited] = [undefined, undefined, noMetadata, noneInherited];
  return { runId, parent, graph, config, startedAt: isoNow(), metadata, inherited };
}

/**
 * The progress of a run that has not begun. A literal with the fields in the order of the table, like that of the step
 * recorder: the fewer shapes the loop sees, the faster it is.
 */
export function newProgress(): Progress {
  return {
    checkpointNode: "",
    phase: "",
    nextNode: undefined,
    timestamp: isoNow(),
    step: 0,
    status: "pending",
    error: undefined,
    reason: "",
    counts: noCounts,
    steps: noSteps,
    pauses: noPauses,
    answers: noAnswers,
    unfinished: undefined,
    begun: undefined,
    tasks: noTasks,
    rollback: 0,
    recovery: undefined,
    resumes: 0,
    crashes: 0,
    ledger: Ledger.empty,
  };
}

/** Nothing saved yet. */
export const unsaved: Saved = Object.freeze({
  checkpointId: "",
  sequence: 0,
  savedAt: "",
  bytes: undefined,
});

/**
 * Whether a State is a progress save: one made inside a node that has not completed. The save that resumes a
 * failed run is one too.
 */
export function isProgressSave({ unfinished, status, reason }: Progress): boolean {
  return unfinished !== undefined || (status === "failed" && reason === "resume");
}

function nameOf(graph: GraphIdentity | undefined): string {
  return graph?.name ?? "";
}

/** An error without its stack. */
function bare(error: RunError | undefined): Omit<RunError, "stack"> | undefined {
  if (error === undefined) return undefined;
  const { name, message, node } = error;
  return { name, message, node };
}

/** Whether a person can answer a pause: it is neither a breakpoint nor a wait until a given time. */
export function isAnswerable({
  breakpoint,
  until,
}: {
  readonly breakpoint?: unknown;
  readonly until?: unknown;
}): boolean {
  return breakpoint === undefined && until === undefined;
}
