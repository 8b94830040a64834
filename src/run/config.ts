import { checkKeep, checkKeepPerPhase } from "../checkpoint/arguments.js";
import { checkMigrations, type Migrations } from "../checkpoint/migration.js";
import { type CheckpointStore, isCheckpointStore } from "../checkpoint/store.js";
import { ConfigError, show } from "../errors.js";
import type { Audit } from "../event-map.js";
import { EventBus, type EventObserver, isObserver, type Observer, observe } from "../events.js";
import { getObserver, noopObserver } from "../observers/registry.js";
import {
  type Check,
  check,
  checkOptions,
  duration,
  flag,
  integer,
  number,
  oneOf,
  strings,
  text,
} from "../options.js";
import { checkLedgerLimits, type LedgerLimits } from "../state/ledger.js";
import { checkMetadata, keptMetadata, type Metadata } from "../state/metadata.js";
import { checkReducers, type Reducer, type Reducers } from "../state/reducers.js";
import { isSchema, type StandardSchema } from "../state/schema.js";
import { DEFAULT_MAX_STEPS } from "../state/steps.js";
import { getCheckpointStore } from "../stores/registry.js";
import { claimOf } from "./loop/control.js";
import { checkMissingNodes, type MissingNode } from "./position/position.js";
import { checkTriggers, type Trigger } from "./saving/triggers.js";

/** When a graph saves its State, and where. */
export interface CheckpointConfig {
  /** A store, its address (`file:DIR`, `sqlite:FILE`, `pglite:DIR`, `postgres://…`, `redis://…`, `mirror:STORE,COPY`) or the name of a registered one; `"memory"` by default. */
  readonly store?: string | CheckpointStore;
  /**
   * Save after every *n* nodes; 0, the default, saves nothing. `"adaptive"` saves when the work not yet saved
   * is worth more than a save, from measured node times, save cost and failure rate.
   */
  readonly interval?: number | "adaptive";
  /**
   * `"sync"`, the default: a node's result is saved before its successor starts. `"async"`: the next node
   * starts while the save is under way; pauses, `once` and the end wait for it, and a failed save stops the
   * run. `"exit"`: only pauses, failures, aborts and the end are saved.
   */
  readonly mode?: "sync" | "async" | "exit";
  /** With `interval: "adaptive"`: the most work that may be unsaved between two nodes. */
  readonly maxLoss?: MaxLoss;
  /** Keep the checkpoints of a run that completed; `false` by default. */
  readonly preserve?: boolean;
  /**
   * How many completed steps of a run to keep, the newest; at least 2. By default the store's own setting, 5.
   * The newest checkpoint of each kept step stays, and the newest progress save of an unfinished node.
   */
  readonly keep?: number;
  /** How many completed steps of each phase to keep in addition; none by default. */
  readonly keepPerPhase?: number;
  /**
   * Other moments at which to save: `afterNodes`, `onError`, `whenConfidenceBelow`, `everyMs`, `when` and
   * others.
   */
  readonly triggers?: readonly Trigger[];
  /**
   * What a failed save does to the run: `"fail"`, the default, stops it; `"continue"` only emits
   * `checkpoint.error`.
   */
  readonly onSaveError?: "fail" | "continue";
}

/** The most work that a crash may cost. */
export interface MaxLoss {
  /** Milliseconds of work. */
  readonly ms?: number;
  /** US dollars, as the ledger counts them. */
  readonly costUsd?: number;
}

/** An observer, the name of a registered one, or several. */
export type ObserverConfig = string | Observer | readonly (string | Observer | undefined)[];

/** How a graph runs. Everything except functions, schemas and stores can come from a JSON file. */
export interface GraphConfig<D extends object = object> {
  /** Names the graph in events and checkpoints; `"graph"` by default. */
  readonly name?: string;
  /** Handles every event; `"noop"` by default. */
  readonly observer?: ObserverConfig;
  /** How many nodes a run may complete, across all its resumes; 1000 by default. */
  readonly maxIterations?: number;
  /** The schema version of the data; 0 by default. Raise it when the data changes, and add a migration. */
  readonly version?: number;
  /** Functions that convert data of an older version to the next, keyed by the version each starts from. */
  readonly migrations?: Migrations;
  /**
   * Gives the data its type and checks it before a run starts, after it was loaded and migrated, after a fork or an
   * answer changed it and, with `validate: "nodes"`, after each node: any Standard Schema, such as one of zod,
   * valibot or arktype. It must accept its own output.
   */
  readonly schema?: StandardSchema<unknown, D>;
  /**
   * When to check the data against the schema: `"start"`, the default, as `schema` says; `"nodes"`, also after each
   * node.
   */
  readonly validate?: "start" | "nodes";
  /**
   * How keys of an object that a node returns are combined with the old values: `{ messages: append }`. Other
   * keys replace the old value.
   */
  readonly reducers?: Reducers<D>;
  /**
   * What to do if a checkpoint was made by a graph of another shape: `"warn"`, which emits an event, or
   * `"error"`.
   */
  readonly onMismatch?: "warn" | "error";
  /**
   * Replacements for removed nodes, by their old names, for runs that stand on them. `{ draft: "review" }`
   * continues such a run at `review`. `{ draft: { as: "write" } }` takes `draft` for `write`, as after a
   * rename: a run that has completed it continues after `write`; one in the middle of it continues in `write`.
   */
  readonly onMissingNode?: Readonly<Record<string, MissingNode>>;
  /** Nodes to pause the run before or after, to inspect its State. */
  readonly breakpoints?: Breakpoints;
  /** How much of the ledger a run keeps. */
  readonly ledger?: LedgerLimits;
  /**
   * Labels of the graph's runs: saved with each run, shown in lists and used by filters. A State's own values take
   * precedence. A resume replaces the values that came from a graph, so that they describe the process that now works
   * on the run; see `environment()` of `waymark/environment`.
   */
  readonly metadata?: Metadata;
  /** How much a checkpoint records about its run. */
  readonly record?: RecordConfig;
  /** Who uses this graph, and for what; included in the events of checkpoints that are saved, loaded or removed. */
  readonly audit?: Audit;
  /** When to save, and where. */
  readonly checkpoint?: CheckpointConfig;
}

/** How much a checkpoint records about its run. */
export interface RecordConfig {
  /** How many steps, the newest; 100 by default, 0 for none. Totals per node stay exact all the same. */
  readonly maxSteps?: number;
}

/** Nodes at which a run pauses; `resume` without input continues. */
export interface Breakpoints {
  /** Pause before these nodes run. */
  readonly before?: readonly string[];
  /** Pause after these nodes have completed. */
  readonly after?: readonly string[];
}

/** The options that are used as they are. */
type Given = Omit<GraphConfig, "observer" | "reducers" | "validate" | "record" | "checkpoint"> &
  Omit<CheckpointConfig, "store" | "interval" | "maxLoss">;
type Optional = "schema" | "breakpoints" | "keep" | "keepPerPhase";

/** A checked config with its defaults, and with names replaced by what they refer to. */
export interface Settings extends Required<Omit<Given, Optional>>, Explicit<Pick<Given, Optional>> {
  /** `undefined` if nothing is saved. */
  readonly store: CheckpointStore | undefined;
  readonly interval: number;
  /** The limits of `interval: "adaptive"`; `undefined` without it. */
  readonly adaptive: MaxLoss | undefined;
  readonly validatesNodes: boolean;
  readonly reducers: Readonly<Record<string, Reducer<unknown>>> | undefined;
  /** How many steps a State remembers. */
  readonly maxSteps: number;
  readonly bus: EventBus;
  /** Reads a run's events back, if one of the observers can. */
  readonly tail: EventObserver["tail"];
  /** Claims a run before work on it begins. */
  readonly claim: typeof claimOf;
  /** How many milliseconds a run may wait in this process; it pauses for longer waits. */
  readonly longestWait: number;
  /** Whether its runs are inside a node of another run, without a store of their own. */
  readonly isInner: boolean;
}

/** The same fields, which may be `undefined` but never absent. */
type Explicit<T> = { readonly [K in keyof Required<T>]: T[K] | undefined };

const names: Check = check("an array of node names", strings.accepts);

const checkInterval = check(
  'an integer ≥ 0 or "adaptive"',
  (value) => value === "adaptive" || (Number.isSafeInteger(value) && Number(value) >= 0),
);

/** Checks the `audit` option. */
export const checkAudit: Check = (name, value) =>
  checkOptions(name, value, { actor: text, purpose: text });

const checkpointChecks: Readonly<Record<keyof CheckpointConfig, Check>> = {
  store: () => {},
  interval: checkInterval,
  mode: oneOf("sync", "async", "exit"),
  maxLoss: (loss, limits) => checkOptions(loss, limits, { ms: duration, costUsd: number(0) }),
  preserve: flag,
  keep: checkKeep,
  keepPerPhase: checkKeepPerPhase,
  triggers: checkTriggers,
  onSaveError: oneOf("fail", "continue"),
};

const checks: Readonly<Record<keyof GraphConfig, Check>> = {
  name: text,
  observer: () => {},
  maxIterations: integer(1, true),
  version: integer(0),
  migrations: checkMigrations,
  schema: check("a Standard Schema", isSchema),
  validate: oneOf("start", "nodes"),
  reducers: checkReducers,
  onMismatch: oneOf("warn", "error"),
  onMissingNode: checkMissingNodes,
  breakpoints: (name, value) => checkOptions(name, value, { before: names, after: names }),
  ledger: checkLedgerLimits,
  metadata: checkMetadata,
  record: (name, value) => checkOptions(name, value, { maxSteps: integer(0) }),
  audit: checkAudit,
  checkpoint: (name, value) => checkOptions(name, value, checkpointChecks),
};

/**
 * Checks a config and fills in the defaults.
 *
 * @throws ConfigError, naming the field.
 */
export function resolveConfig<D extends object>(config: GraphConfig<D>): Settings {
  checkOptions("config", config, checks);
  const { name = "graph", maxIterations = 1000, version = 0, migrations = {} } = config;
  const { onMismatch = "warn", onMissingNode = {}, ledger = {}, schema, breakpoints } = config;
  const { observer = "noop", record, checkpoint = {} } = config;
  const { store = "memory", interval = 0, mode = "sync", maxLoss, triggers = [] } = checkpoint;
  const { preserve = false, keep, keepPerPhase, onSaveError = "fail" } = checkpoint;
  checkCombinations(checkpoint);
  const resolved = resolveStore(store);
  const isAdaptive = interval === "adaptive";
  const isExit = mode === "exit";
  const saves = interval !== 0 || triggers.length > 0 || isExit;
  return {
    ...{ name, maxIterations, version, migrations, onMismatch, onMissingNode },
    store: saves ? resolved : undefined,
    interval: isAdaptive || interval === 0 || isExit ? Number.POSITIVE_INFINITY : interval,
    adaptive: isAdaptive ? (maxLoss ?? {}) : undefined,
    ...{ mode, triggers, onSaveError, preserve, keep, keepPerPhase, ledger, schema, breakpoints },
    validatesNodes: config.validate === "nodes",
    reducers: config.reducers as Settings["reducers"],
    metadata: keptMetadata(config.metadata ?? {}),
    maxSteps: record?.maxSteps ?? DEFAULT_MAX_STEPS,
    audit: Object.freeze({ ...config.audit }),
    ...resolveObservers(observer, config.observer !== undefined),
    claim: claimOf,
    longestWait: Number.POSITIVE_INFINITY,
    isInner: false,
  };
}

/** Rejects options that would have no effect together. */
function checkCombinations({ interval, mode, maxLoss, triggers = [] }: CheckpointConfig): void {
  if (maxLoss !== undefined && interval !== "adaptive") {
    throw new ConfigError("config.checkpoint.maxLoss", 'needs checkpoint.interval: "adaptive"');
  }
  if (mode !== "exit") return;
  if (interval === "adaptive" || triggers.length > 0) {
    const problem =
      'is "exit", which saves nothing between nodes: leave out triggers and "adaptive"';
    throw new ConfigError("config.checkpoint.mode", problem);
  }
}

function resolveStore(store: string | CheckpointStore): CheckpointStore {
  if (typeof store === "string") return getCheckpointStore(store);
  if (isCheckpointStore(store)) return store;
  throw new ConfigError(
    "config.checkpoint.store",
    `must be an address, a registered name or a CheckpointStore; got ${show(store)}`,
  );
}

/** @param isChosen - whether the config names an observer: then `"noop"` also silences warnings. */
function resolveObservers(
  config: ObserverConfig,
  isChosen: boolean,
): Pick<Settings, "bus" | "tail"> {
  const bus = new EventBus();
  let tail: EventObserver["tail"];
  for (const one of Array.isArray(config) ? config : [config]) {
    if (one === undefined) continue;
    const observer: unknown = typeof one === "string" ? getObserver(one) : one;
    if (!isObserver(observer)) {
      throw new ConfigError(
        "config.observer",
        `must be a name, a function or an object with onEvent; got ${show(observer)}`,
      );
    }
    if (observer !== noopObserver) observe(bus, observer);
    else if (isChosen) bus.on("checkpoint.warning", () => {});
    if ("tail" in observer) tail ??= observer.tail?.bind(observer);
  }
  return { bus, tail };
}
