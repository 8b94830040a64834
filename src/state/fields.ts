import { isoNow } from "../clock.js";
import { type CountsJSON, counts, noCounts } from "./counts.js";
import {
  type AnyKind,
  count,
  jsonOf,
  type Kind,
  list,
  name,
  names,
  or,
  runId,
  texts,
  time,
  timeOrNone,
  type Fields as Values,
  word,
  writeField,
} from "./kinds.js";
import { contents, Ledger, type LedgerJSON } from "./ledger.js";
import {
  type AnyField,
  everywhere,
  field,
  fieldsIn,
  inHistory,
  inRuns,
  type JSONOf,
  type ListedOf,
  type ListedWholeOf,
  type ValuesOf,
  type Where,
} from "./listing.js";
import { type Metadata, metadata, noMetadata } from "./metadata.js";
import { answer, noAnswers, noPauses, pause } from "./pauses.js";
import type { Reason } from "./reasons.js";
import {
  bareError,
  config,
  error,
  type GraphIdentity,
  graph,
  isEnd,
  parent,
  type RunError,
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
  userText: contents.userText,
  read: (json) => Ledger.fromTree(json),
  write: (given) => given.toJSON(),
};

function withoutStack(given: RunError | undefined): Omit<RunError, "stack"> | undefined {
  if (given === undefined) return undefined;
  const { name, message, node } = given;
  return { name, message, node };
}

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
  graph: field(or(graph, undefined), {
    ...inRuns,
    brief: { kind: name, of: (given: GraphIdentity | undefined) => given?.name ?? "" },
  }),
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
    brief: { kind: or(bareError, undefined), of: withoutStack },
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

/** The fields of a stored record that are not only in its header. */
export const inBody: readonly AnyField[] = fields.filter(({ isOnlyInHeader }) => !isOnlyInHeader);

const listings: Readonly<Record<Where, readonly AnyField[]>> = {
  header: fields.filter(({ header }) => header),
  history: fields.filter(({ history }) => history),
  runs: fields.filter(({ runs }) => runs),
};

/** The kinds of the fields in the header of a stored record, where they are absent if they are empty. */
export const headerKinds: Readonly<Record<string, AnyKind>> = Object.fromEntries(
  listings.header.map(({ as, brief, kind }) => [as, brief?.kind ?? kind]),
);

/**
 * What is listed of a State: in the header without what is empty.
 *
 * @param own - what the entry has besides. It is added to: to spread what was made field by field would take longer.
 */
export function listed<W extends Where, O extends object>(
  record: Pick<StateRecord, "identity" | "progress" | "saved">,
  where: W,
  own: O,
): Listed<W> & O {
  const made = own as Record<string, unknown>;
  for (const { part, key, as, brief, kind } of listings[where]) {
    const value = (record[part] as Values)[key];
    const shown = brief === undefined ? value : brief.of(value);
    if (shown === undefined || (where === "header" && kind.isEmpty?.(shown))) continue;
    made[as] = shown;
  }
  return own as Listed<W> & O;
}

/**
 * What is listed of a stored record, whose header leaves out what is empty.
 *
 * @param own - what the entry has besides; to spread one that was made field by field would take longer.
 */
export function listedOf<W extends Where, O extends object>(
  header: Listed<"header">,
  where: W,
  own: O,
): Listed<W> & O {
  const made: Record<string, unknown> = {};
  for (const { as, kind } of listings[where]) {
    const value = (header as unknown as Values)[as] ?? kind.empty;
    if (value !== undefined) made[as] = value;
  }
  return Object.assign(made, own) as Listed<W> & O;
}

/** The identity of a run that begins now. */
export function newIdentity(
  runId: string,
  metadata: Metadata = noMetadata,
  startedAt = isoNow(),
): Identity {
  const [parent, graph, config, inherited] = [undefined, undefined, noMetadata, noneInherited];
  return { runId, parent, graph, config, startedAt, metadata, inherited };
}

/**
 * The progress of a run that has not begun. A literal with the fields in the order of the table, like that of the step
 * recorder: the fewer shapes the loop sees, the faster it is.
 */
export function newProgress(timestamp = isoNow()): Progress {
  return {
    checkpointNode: "",
    phase: "",
    nextNode: undefined,
    timestamp,
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
  return unfinished !== undefined || (status === "failed" && isReason(reason, "resume"));
}

/** Whether the reason of a save is one of these. */
export function isReason(reason: unknown, ...these: readonly Reason[]): boolean {
  return these.some((one) => one === reason);
}

/** Whether a run has ended, unless it is resumed. */
export function hasEnded({ status }: Pick<Progress, "status">): boolean {
  return isEnd[status];
}

/** Adds fields of a record to JSON. */
export function writeFields(
  record: StateRecord,
  which: readonly AnyField[],
  json: Record<string, unknown>,
): void {
  for (const { part, key, kind, isWritten } of which) {
    const value = (record[part] as Values)[key];
    if (isWritten) json[key] = value;
    else if (kind.isSpread) Object.assign(json, jsonOf(kind, value));
    else writeField(kind, value, json, key);
  }
}

/**
 * The fields from JSON.
 *
 * @param json - the fields by name.
 * @param header - has those that are not in the body of a stored record.
 */
export function readFields(
  json: Values,
  header: Listed<"header"> | undefined,
): Omit<StateRecord, "data" | "traits"> {
  const made = {
    identity: newIdentity("", noMetadata, ""),
    progress: newProgress(""),
    saved: { ...unsaved },
  };
  for (const { part, key, as, kind, isWritten, isOnlyInHeader } of fields) {
    const isShown = header !== undefined && isOnlyInHeader;
    const given: unknown = isShown ? Reflect.get(header, as) : kind.isSpread ? json : json[key];
    const isEmpty = given === undefined && kind.isEmpty !== undefined && (isShown || !isWritten);
    const value = isEmpty ? kind.empty : kind.read(given, "state", key);
    (made[part] as Record<string, unknown>)[key] = value;
  }
  return made;
}
