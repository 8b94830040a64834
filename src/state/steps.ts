import {
  type Fields,
  fieldsOf,
  readCount,
  readInteger,
  readList,
  readOneOf,
  readText,
  readTime,
  refuse,
} from "./fields.js";
import { tallyFromJSON, type Usage, type UsageTotals, usageOf } from "./ledger/usage.js";

/** A node that completed. */
export interface StepRecord {
  /** The node. */
  readonly node: string;
  /** The number of the step in the run, starting at 1. */
  readonly step: number;
  /** The phase of the node; `""` for none. */
  readonly phase: string;
  /** When it began, ISO 8601; if it began in an earlier process, as recorded in a checkpoint. */
  readonly startedAt: string;
  /** When it completed, ISO 8601. */
  readonly completedAt: string;
  /** How long it worked, in milliseconds; pauses, downtime and work lost in a crash don't count. */
  readonly durationMs: number;
  /** How many attempts it took, failed ones before a resume included. */
  readonly attempts: number;
  /** The attempts that failed, oldest first; the newest 20, absent for none. */
  readonly failedAttempts?: readonly AttemptRecord[];
  /** When the last attempt began, ISO 8601; absent if none failed. */
  readonly lastAttemptAt?: string;
  /** How often it was restarted after its process had died; absent if never. */
  readonly restarts?: number;
  /** The usage it recorded in the ledger. */
  readonly usage?: Usage;
  /** Its items, tasks, calls of `once` and inner nodes, in the order they ended; the newest 100. */
  readonly items?: readonly ItemRecord[];
}

/** A failed attempt of a node. */
export interface AttemptRecord {
  /** When it began, ISO 8601. */
  readonly startedAt: string;
  /** How long it took, in milliseconds. */
  readonly durationMs: number;
}

/** A part of a node: an item of a list, a task of a `dag`, a call of `once`, or a node of a `subgraph`. */
export interface ItemRecord {
  /** The name of the item, the task or the inner node, or the key of the call; `outer/inner` in a nested graph. */
  readonly name: string;
  /** When it began, ISO 8601. */
  readonly startedAt: string;
  /** How long it took, in milliseconds. */
  readonly durationMs: number;
  /** How it ended: `stopped` if the run was cancelled, or another item failed first. */
  readonly outcome: ItemOutcome;
}

/** How a part of a node ended. */
export type ItemOutcome = "completed" | "failed" | "stopped";

/** Every way in which a part of a node can end. */
const outcomes: readonly ItemOutcome[] = ["completed", "failed", "stopped"];

/** What is known about a node that has begun and not completed. */
export interface Begun {
  /** The node. */
  readonly node: string;
  /** When it first began, ISO 8601. */
  readonly startedAt: string;
  /** How long it worked before its last save, in milliseconds. */
  readonly durationMs: number;
  /** How many attempts failed for good in earlier processes. */
  readonly attempts: number;
  /** The newest of the attempts that failed. */
  readonly failedAttempts: readonly AttemptRecord[];
  /** How often it was begun again after its process had died. */
  readonly restarts: number;
  /** What it had used when it failed or paused. */
  readonly usage: Usage | undefined;
  /** Its parts that have ended. */
  readonly items: ItemLog;
}

/** What a node did over a whole run. */
export interface NodeTotals {
  /** How often it completed. */
  readonly visits: number;
  /** How many attempts that took. */
  readonly attempts: number;
  /** How long it worked, in milliseconds. */
  readonly durationMs: number;
  /** What it used. */
  readonly usage?: UsageTotals;
}

/** How many steps a State keeps by default. */
export const DEFAULT_MAX_STEPS = 100;

/** How many parts of a node are kept. */
const MAX_ITEMS = 100;

/** How many failed attempts of a node are kept. */
export const MAX_FAILED_ATTEMPTS = 20;

/** The newest of many records. Adding one costs the same however many there are. */
export class NewestLog<T> {
  /** Append-only, so that it can be shared by instances of different length. */
  readonly #log: T[];
  readonly #length: number;
  readonly #most: number;

  private constructor(log: T[], most: number) {
    this.#log = log;
    this.#length = log.length;
    this.#most = most;
  }

  /** A log of all these records, whose limit is at least their number. */
  static of<T>(records: readonly T[], most: number): NewestLog<T> {
    return new NewestLog([...records], Math.max(most, records.length));
  }

  /** The same log with another limit. */
  withLimit(most: number): NewestLog<T> {
    return most === this.#most ? this : new NewestLog([...this.list()], most);
  }

  with(record: T): NewestLog<T> {
    const isShared = this.#log.length === this.#length && this.#length < 2 * this.#most;
    const log = isShared ? this.#log : [...this.list()];
    log.push(record);
    return new NewestLog(log, this.#most);
  }

  /** The newest records, oldest first. */
  list(): readonly T[] {
    const first = Math.max(0, this.#length - this.#most);
    return this.#log.slice(first, this.#length);
  }

  get isEmpty(): boolean {
    return this.#length === 0 || this.#most === 0;
  }
}

/** The newest steps of a run. */
export type StepLog = NewestLog<StepRecord>;

/** The newest parts of a node. */
export type ItemLog = NewestLog<ItemRecord>;

/** No steps yet. */
export const noSteps: StepLog = NewestLog.of([], DEFAULT_MAX_STEPS);

/** No parts yet. */
export const noItems: ItemLog = NewestLog.of([], MAX_ITEMS);

/** No failed attempts. */
export const noFailedAttempts: readonly AttemptRecord[] = Object.freeze([]);

/** Reads a step from JSON, checking every field. */
export function decodeStep(fields: Fields, path: string): StepRecord {
  const { restarts, usage, items, failedAttempts, lastAttemptAt } = fields;
  const step: { -readonly [K in keyof StepRecord]: StepRecord[K] } = {
    node: readText(fields, "node", path),
    step: readInteger(fields, "step", path, 0),
    phase: fields.phase === undefined ? "" : readText(fields, "phase", path),
    startedAt: readTime(fields, "startedAt", path),
    completedAt: readTime(fields, "completedAt", path),
    durationMs: readInteger(fields, "durationMs", path, 0),
    attempts: readInteger(fields, "attempts", path, 0),
  };
  if (failedAttempts !== undefined) {
    step.failedAttempts = readList(fields, "failedAttempts", path, decodeAttempt);
  }
  if (lastAttemptAt !== undefined) step.lastAttemptAt = readTime(fields, "lastAttemptAt", path);
  if (restarts !== undefined) step.restarts = readInteger(fields, "restarts", path, 0);
  if (usage !== undefined) step.usage = decodeUsage(usage, `${path}.usage`);
  if (items !== undefined) step.items = decodeItems(items, `${path}.items`);
  return step;
}

function decodeAttempt(fields: Fields, path: string): AttemptRecord {
  return {
    startedAt: readTime(fields, "startedAt", path),
    durationMs: readInteger(fields, "durationMs", path, 0),
  };
}

function decodeUsage(value: unknown, path: string): Usage {
  return usageOf(tallyFromJSON(path, fieldsOf(value, path)));
}

/**
 * A part of a node as JSON: name, start, duration, and the outcome unless it completed. An array, because
 * many are saved.
 */
export type ItemJSON = readonly [
  name: string,
  startedAt: string,
  durationMs: number,
  outcome?: ItemOutcome,
];

/** A step as JSON. */
export interface StepJSON extends Omit<StepRecord, "items"> {
  /** Its parts. */
  readonly items?: readonly ItemJSON[];
}

/** The JSON of records, so that the next save gets the same objects for records it already has. */
const known = new WeakMap<object, unknown>();

function once<T extends object, J>(record: T, encode: (record: T) => J): J {
  const before = known.get(record) as J | undefined;
  if (before !== undefined) return before;
  const json = encode(record);
  known.set(record, json);
  return json;
}

function encodeItem({ name, startedAt, durationMs, outcome }: ItemRecord): ItemJSON {
  return outcome === "completed"
    ? [name, startedAt, durationMs]
    : [name, startedAt, durationMs, outcome];
}

function encodeItems(items: readonly ItemRecord[]): readonly ItemJSON[] {
  return items.map((item) => once(item, encodeItem));
}

/** Steps as JSON. */
export function encodeSteps(steps: StepLog): readonly StepJSON[] {
  return steps.list().map((step) => (isPlain(step) ? step : once(step, encodeStep)));
}

/** Whether a step is its own JSON. */
function isPlain(step: StepRecord): step is StepRecord & { readonly items?: never } {
  return step.items === undefined;
}

function encodeStep({ items = [], ...step }: StepRecord): StepJSON {
  return { ...step, items: encodeItems(items) };
}

function decodeItems(value: unknown, path: string): readonly ItemRecord[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return refuse(value, path, "an array");
  return Object.freeze(
    value.map((item: unknown, at) => Object.freeze(decodeItem(item, `${path}[${at}]`))),
  );
}

function decodeItem(value: unknown, path: string): ItemRecord {
  if (!Array.isArray(value)) return refuse(value, path, "an array");
  const [name, startedAt, durationMs, outcome = "completed"] = value as readonly unknown[];
  const fields = { name, startedAt, durationMs, outcome };
  return {
    name: readText(fields, "name", path),
    startedAt: readTime(fields, "startedAt", path),
    durationMs: readInteger(fields, "durationMs", path, 0),
    outcome: readOneOf(fields, "outcome", path, outcomes),
  };
}

/** A node that has begun, as JSON; empty fields are omitted. */
export interface BegunJSON {
  /** The node. */
  readonly node: string;
  /** When it first began, ISO 8601. */
  readonly startedAt: string;
  /** How long it worked before its last save, in milliseconds. */
  readonly durationMs: number;
  /** How many attempts failed for good. */
  readonly attempts?: number;
  /** The newest of the attempts that failed. */
  readonly failedAttempts?: readonly AttemptRecord[];
  /** How often it was begun again after its process had died. */
  readonly restarts?: number;
  /** What it had used when it failed or paused. */
  readonly usage?: Usage;
  /** Its parts that have ended. */
  readonly items?: readonly ItemJSON[];
}

/** A node that has begun as JSON. */
export function encodeBegun(begun: Begun): BegunJSON {
  const { node, startedAt, durationMs, attempts, failedAttempts, restarts, usage, items } = begun;
  return {
    ...{ node, startedAt, durationMs },
    ...(attempts > 0 && { attempts }),
    ...(failedAttempts.length > 0 && { failedAttempts }),
    ...(restarts > 0 && { restarts }),
    ...(usage !== undefined && { usage }),
    ...(!items.isEmpty && { items: encodeItems(items.list()) }),
  };
}

/** Reads a node that has begun from JSON, checking every field. */
export function decodeBegun(fields: Fields, path: string): Begun {
  const { usage, items } = fields;
  return {
    node: readText(fields, "node", path),
    startedAt: readTime(fields, "startedAt", path),
    durationMs: readInteger(fields, "durationMs", path, 0),
    attempts: readCount(fields, "attempts", path),
    failedAttempts: readList(fields, "failedAttempts", path, decodeAttempt),
    restarts: readCount(fields, "restarts", path),
    usage: usage === undefined ? undefined : decodeUsage(usage, `${path}.usage`),
    items: NewestLog.of(decodeItems(items, `${path}.items`), MAX_ITEMS),
  };
}
