import {
  count,
  fieldsOf,
  jsonOf,
  type Kind,
  list,
  name,
  object,
  oneOf,
  optional,
  or,
  refuse,
  text,
  time,
} from "./kinds.js";
import { tally, type Usage, type UsageTotals, usageOf } from "./ledger.js";

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
  static of<T>(records: Iterable<T>, most: number): NewestLog<T> {
    const log = [...records];
    return new NewestLog(log, Math.max(most, log.length));
  }

  /** How much of the log belongs to it; without a limit, how many records were added. */
  get length(): number {
    return this.#length;
  }

  /** The same log with another limit. */
  withLimit(most: number): NewestLog<T> {
    return most === this.#most ? this : new NewestLog(this.list(), most);
  }

  with(record: T): NewestLog<T> {
    const isShared = this.#log.length === this.#length && this.#length < 2 * this.#most;
    const log = isShared ? this.#log : this.list();
    log.push(record);
    return new NewestLog(log, this.#most);
  }

  /** The newest records, oldest first, in an array of its own. */
  list(): T[] {
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

const attempts: Kind<readonly AttemptRecord[]> = list(
  object<AttemptRecord>({ startedAt: time, durationMs: count }),
);

const usage: Kind<Usage> = {
  userText: tally.userText,
  read: (json, path, key) => usageOf(tally.read(json, path, key)),
};

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

function once<T extends object, J>(record: T, write: (record: T) => J): J {
  const before = known.get(record) as J | undefined;
  if (before !== undefined) return before;
  const json = write(record);
  known.set(record, json);
  return json;
}

const itemOutcome = oneOf<ItemOutcome>(["completed", "failed", "stopped"]);

const items: Kind<readonly ItemRecord[], readonly ItemJSON[]> = list({
  userText: { fields: { 0: "own" }, each: "fixed" },
  read: (json, path, key) => {
    const at = `${path}.${key}`;
    if (!Array.isArray(json)) return refuse(json, at, "an array");
    const [name, startedAt, durationMs, outcome = "completed"] = json as readonly unknown[];
    return Object.freeze({
      name: text.read(name, at, "name"),
      startedAt: time.read(startedAt, at, "startedAt"),
      durationMs: count.read(durationMs, at, "durationMs"),
      outcome: itemOutcome.read(outcome, at, "outcome"),
    });
  },
  write: (item) => once(item, encodeItem),
});

function encodeItem({ name, startedAt, durationMs, outcome }: ItemRecord): ItemJSON {
  return outcome === "completed"
    ? [name, startedAt, durationMs]
    : [name, startedAt, durationMs, outcome];
}

/** A step in a record. */
export const step: Kind<StepRecord, StepJSON> = object<StepRecord, StepJSON>({
  node: name,
  step: count,
  phase: or(name, ""),
  startedAt: time,
  completedAt: time,
  durationMs: count,
  attempts: count,
  failedAttempts: optional(attempts),
  lastAttemptAt: optional(time),
  restarts: optional(count),
  usage: optional(usage),
  items: optional(items),
});

const steps: Kind<readonly StepRecord[], readonly StepJSON[]> = {
  ...list<StepRecord, StepJSON>({ ...step, read: readStep }),
  write: (records) =>
    records.every(isPlain)
      ? records
      : records.map((record) => (isPlain(record) ? record : once(record, encodeStep))),
};

/** Reads what `step` reads; written out because many are loaded. */
export function readStep(json: unknown, path: string, key: string): StepRecord {
  const at = `${path}.${key}`;
  const given = fieldsOf(json, at);
  const { phase, failedAttempts, lastAttemptAt, restarts, usage: used, items: parts } = given;
  const record: { -readonly [K in keyof StepRecord]: StepRecord[K] } = {
    node: name.read(given.node, at, "node"),
    step: count.read(given.step, at, "step"),
    phase: phase === undefined ? "" : name.read(phase, at, "phase"),
    startedAt: time.read(given.startedAt, at, "startedAt"),
    completedAt: time.read(given.completedAt, at, "completedAt"),
    durationMs: count.read(given.durationMs, at, "durationMs"),
    attempts: count.read(given.attempts, at, "attempts"),
  };
  if (failedAttempts !== undefined) {
    record.failedAttempts = attempts.read(failedAttempts, at, "failedAttempts");
  }
  if (lastAttemptAt !== undefined) {
    record.lastAttemptAt = time.read(lastAttemptAt, at, "lastAttemptAt");
  }
  if (restarts !== undefined) record.restarts = count.read(restarts, at, "restarts");
  if (used !== undefined) record.usage = usage.read(used, at, "usage");
  if (parts !== undefined) record.items = items.read(parts, at, "items");
  return Object.freeze(record);
}

/** Whether a step is its own JSON. */
function isPlain(record: StepRecord): record is StepRecord & { readonly items?: never } {
  return record.items === undefined;
}

function encodeStep({ items: parts = [], ...record }: StepRecord): StepJSON {
  return { ...record, items: jsonOf(items, parts) };
}

/** The newest steps of a run in its record. */
export const stepLog: Kind<StepLog, readonly StepJSON[]> = logOf(steps, DEFAULT_MAX_STEPS);

/** A node that has begun, as JSON; empty fields are omitted. */
export interface BegunJSON extends Partial<Omit<Begun, "items">> {
  /** Its parts that have ended. */
  readonly items?: readonly ItemJSON[];
}

/** A node that has begun in its record. */
export const begun: Kind<Begun, BegunJSON> = object<Begun, BegunJSON>({
  node: name,
  startedAt: time,
  durationMs: count,
  attempts: or(count, 0),
  failedAttempts: or(attempts, noFailedAttempts),
  restarts: or(count, 0),
  usage: or(usage, undefined),
  items: or(logOf(items, MAX_ITEMS), noItems, (log) => log.isEmpty),
});

/** A log of the items of a list. */
function logOf<T, J>(
  kind: Kind<readonly T[], readonly J[]>,
  most: number,
): Kind<NewestLog<T>, readonly J[]> {
  return {
    userText: kind.userText,
    read: (json, path, key) => NewestLog.of(kind.read(json, path, key), most),
    write: (log) => jsonOf(kind, log.list()),
  };
}
