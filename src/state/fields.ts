import { isoNow } from "../clock.js";
import { type CountsJSON, counts, noCounts } from "./counts.js";
import {
  count,
  type DefaultKind,
  jsonOf,
  type Kind,
  list,
  name,
  names,
  or,
  runId,
  type Fields as Tree,
  texts,
  time,
  timeOrNone,
  word,
} from "./kinds.js";
import { type LedgerJSON, ledgerText } from "./ledger/json.js";
import { Ledger } from "./ledger.js";
import {
  type AnyField,
  everywhere,
  field,
  fieldsIn,
  type HeaderKeyOf,
  inHistory,
  inRuns,
  type JSONOf,
  type ListedOf,
  type ListedWholeOf,
  type ValuesOf,
  type Where,
} from "./listing.js";
import { keptMetadata, type Metadata, metadata, noMetadata } from "./metadata.js";
import { answer, noAnswers, noPauses, pause } from "./pauses.js";
import {
  bare,
  bareError,
  config,
  error,
  graph,
  nameOf,
  parent,
  recovery,
  status,
} from "./record.js";
import { unfinished } from "./results.js";
import { begun, noSteps, stepLog } from "./steps.js";

/** No metadata from a graph. */
const noneInherited: readonly string[] = Object.freeze([]);

/** No completed tasks. */
const noTasks: readonly string[] = Object.freeze([]);

const ledger: Kind<Ledger, LedgerJSON> = {
  userText: ledgerText,
  read: (json) => Ledger.fromTree(json),
  write: (given) => given.toJSON(),
};

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
  status: field(status, everywhere),
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

/** All fields by name. */
type Fields = typeof identity & typeof progress & typeof saved;

/** What stays the same while a graph works on a run. */
export interface Identity extends ValuesOf<typeof identity> {}

/** The progress of a run. */
export interface Progress extends ValuesOf<typeof progress> {}

/** The record that a State was last saved as, or loaded from. */
export interface Saved extends ValuesOf<typeof saved> {
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

/** The fields of a record as JSON. */
export type FieldsJSON = JSONOf<Omit<Fields, "counts">> & CountsJSON;

/** The names of the fields that a stored record has only in its header. */
export type HeaderKey = HeaderKeyOf<Fields>;

/** The fields that are listed somewhere. */
export type Listed<W extends Where> = ListedOf<Fields, W>;

/** The fields that are listed, all of each. */
export type ListedWhole = ListedWholeOf<Fields>;

/** All fields, in the order of the table. */
export const fields: readonly AnyField[] = [
  ...fieldsIn("identity", identity),
  ...fieldsIn("progress", progress),
  ...fieldsIn("saved", saved),
];

/** What is listed of a State in `history` or `runs`. */
export function listed<W extends Where>(record: StateRecord, where: W): Listed<W> {
  const made: Record<string, unknown> = {};
  for (const { part, key, as, brief, [where]: isThere } of fields) {
    if (!isThere) continue;
    const value: unknown = Reflect.get(record[part], key);
    const shown = brief === undefined ? value : brief.of(value);
    if (shown !== undefined) made[as] = shown;
  }
  return made as Listed<W>;
}

/** What is listed of a stored record, whose header leaves out what is empty. */
export function listedOf<W extends Where>(header: Listed<"header">, where: W): Listed<W> {
  const made: Record<string, unknown> = {};
  for (const { as, kind, [where]: isThere } of fields) {
    const value: unknown = isThere && (Reflect.get(header, as) ?? kind.empty);
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

/*
 * The rest is written out, not walked from the table, because it runs for each save and each load; a test compares it
 * with the table.
 */

/** JSON that is being written. */
export type Writable = { waymark: number; data?: unknown } & {
  -readonly [K in keyof FieldsJSON]?: FieldsJSON[K];
};

/** JSON that begins with the fields that a stored record has only in its header. */
export function writeHead(
  waymark: number,
  { identity: run, progress: now, saved: last }: StateRecord,
): Writable {
  const json: Writable = {
    waymark,
    runId: run.runId,
    checkpointId: last.checkpointId,
    sequence: last.sequence,
    checkpointNode: now.checkpointNode,
    timestamp: now.timestamp,
    step: now.step,
    status: now.status,
    reason: now.reason,
    startedAt: run.startedAt,
    savedAt: last.savedAt,
    phase: now.phase,
  };
  if (now.nextNode !== undefined) json.nextNode = now.nextNode;
  if (run.metadata !== noMetadata) json.metadata = run.metadata;
  return json;
}

/** Adds the others, which can be large, or rarely change from one checkpoint to the next. */
export function writeBody({ identity: run, progress: now }: StateRecord, json: Writable): void {
  if (now.error !== undefined) json.error = now.error;
  if (run.parent !== undefined) json.parent = run.parent;
  if (run.graph !== undefined) json.graph = run.graph;
  if (run.config !== noMetadata) json.config = run.config;
  if (run.inherited.length > 0) json.inherited = run.inherited;
  const { visits, work } = now.counts.toJSON();
  json.visits = visits;
  if (work !== undefined) json.work = work;
  if (!now.steps.isEmpty) json.steps = jsonOf(progress.steps.kind, now.steps);
  if (now.pauses.length > 0) json.pauses = jsonOf(progress.pauses.kind, now.pauses);
  if (now.answers.length > 0) json.answers = jsonOf(progress.answers.kind, now.answers);
  if (now.unfinished !== undefined) json.unfinished = jsonOf(unfinished, now.unfinished);
  if (now.begun !== undefined) json.begun = jsonOf(begun, now.begun);
  if (now.tasks.length > 0) json.tasks = now.tasks;
  if (now.rollback > 0) json.rollback = now.rollback;
  if (now.recovery !== undefined) json.recovery = now.recovery;
  if (now.resumes > 0) json.resumes = now.resumes;
  if (now.crashes > 0) json.crashes = now.crashes;
  if (!now.ledger.isEmpty) json.ledger = now.ledger.toJSON();
}

/**
 * The fields from JSON.
 *
 * @param json - the fields by name.
 * @param header - has those that are not in the body of a stored record, checked already.
 */
export function readFields(
  json: Tree,
  header: Listed<"header"> | undefined,
): Omit<StateRecord, "data" | "traits"> {
  const { metadata = noMetadata, phase = "" } = header ?? {};
  const isWhole = header === undefined;
  return {
    identity: {
      runId: isWhole ? runId.read(json.runId, "state", "runId") : header.runId,
      parent: orEmpty(identity.parent.kind, json.parent, "parent"),
      graph: orEmpty(identity.graph.kind, json.graph, "graph"),
      config: orEmpty(identity.config.kind, json.config, "config"),
      startedAt: isWhole ? time.read(json.startedAt, "state", "startedAt") : header.startedAt,
      metadata: isWhole
        ? orEmpty(identity.metadata.kind, json.metadata, "metadata")
        : keptMetadata(metadata),
      inherited: orEmpty(identity.inherited.kind, json.inherited, "inherited"),
    },
    progress: {
      checkpointNode: isWhole
        ? name.read(json.checkpointNode, "state", "checkpointNode")
        : header.node,
      phase: isWhole ? name.read(json.phase, "state", "phase") : phase,
      nextNode: isWhole
        ? orEmpty(progress.nextNode.kind, json.nextNode, "nextNode")
        : header.nextNode,
      timestamp: isWhole ? time.read(json.timestamp, "state", "timestamp") : header.timestamp,
      step: isWhole ? count.read(json.step, "state", "step") : header.step,
      status: isWhole ? status.read(json.status, "state", "status") : header.status,
      error: orEmpty(progress.error.kind, json.error, "error"),
      reason: isWhole ? word.read(json.reason, "state", "reason") : header.reason,
      counts: counts.read(json, "state", "counts"),
      steps: orEmpty(progress.steps.kind, json.steps, "steps"),
      pauses: orEmpty(progress.pauses.kind, json.pauses, "pauses"),
      answers: orEmpty(progress.answers.kind, json.answers, "answers"),
      unfinished: orEmpty(progress.unfinished.kind, json.unfinished, "unfinished"),
      begun: orEmpty(progress.begun.kind, json.begun, "begun"),
      tasks: orEmpty(progress.tasks.kind, json.tasks, "tasks"),
      rollback: orEmpty(progress.rollback.kind, json.rollback, "rollback"),
      recovery: orEmpty(progress.recovery.kind, json.recovery, "recovery"),
      resumes: orEmpty(progress.resumes.kind, json.resumes, "resumes"),
      crashes: orEmpty(progress.crashes.kind, json.crashes, "crashes"),
      ledger: orEmpty(progress.ledger.kind, json.ledger, "ledger"),
    },
    saved: {
      checkpointId: isWhole
        ? name.read(json.checkpointId, "state", "checkpointId")
        : header.checkpointId,
      sequence: isWhole ? count.read(json.sequence, "state", "sequence") : header.sequence,
      savedAt: isWhole ? timeOrNone.read(json.savedAt, "state", "savedAt") : header.savedAt,
      bytes: undefined,
    },
  };
}

function orEmpty<T>(kind: DefaultKind<T, unknown>, json: unknown, key: string): T {
  return json === undefined ? kind.empty : kind.read(json, "state", key);
}
