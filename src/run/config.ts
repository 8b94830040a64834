import { checkMigrations, type Migrations } from "../checkpoint/migration.js";
import { checkKeep } from "../checkpoint/retention.js";
import { type CheckpointStore, isCheckpointStore } from "../checkpoint/store.js";
import { ConfigError, show } from "../errors.js";
import type { Audit } from "../event-map.js";
import { EventBus, type Observer, observe } from "../events.js";
import { getObserver, isObserver, noopObserver } from "../observers/registry.js";
import { type Check, check, checkOptions, flag, integer, oneOf, text } from "../options.js";
import { checkLedgerLimits, type LedgerLimits } from "../state/ledger.js";
import { getCheckpointStore } from "../stores/registry.js";
import { checkTriggers, type Trigger } from "./triggers.js";

/** When a graph saves its State, and where. */
export interface CheckpointConfig {
  /** A store, or the name of a registered one; `"memory"` by default. */
  readonly store?: string | CheckpointStore;
  /** Save after every so many nodes; 0, the default, saves nothing. */
  readonly interval?: number;
  /** Keep the checkpoints of a run that completed; `false` by default. */
  readonly preserve?: boolean;
  /** How many checkpoints of a run to keep, the newest; at least 2. By default what the store does: 5. */
  readonly keep?: number;
  /** When else to save: `afterNodes`, `onError`, `whenConfidenceBelow`, `everyMs`, `when` and others. */
  readonly triggers?: readonly Trigger[];
  /** What a save that fails does to the run: `"fail"`, the default, stops it; `"continue"` only tells listeners. */
  readonly onSaveError?: "fail" | "continue";
}

/** An observer, the name of a registered one, or several. */
export type ObserverConfig = string | Observer | readonly (string | Observer | undefined)[];

/** How a graph runs. All of it, but for functions and stores, can come out of a JSON file. */
export interface GraphConfig {
  /** Names the graph in events and checkpoints; `"graph"` by default. */
  readonly name?: string;
  /** Who is told every event; `"noop"` by default. */
  readonly observer?: ObserverConfig;
  /** How many nodes a run may complete, over all its resumes; 1000 by default. */
  readonly maxIterations?: number;
  /** The schema version of the data; 0 by default. Raise it when the data changes, and add a migration. */
  readonly version?: number;
  /** How data of an older version becomes data of the next, by the version each starts from. */
  readonly migrations?: Migrations;
  /** What to do when a checkpoint was made by a graph of another shape: `"warn"` by an event, or `"error"`. */
  readonly onMismatch?: "warn" | "error";
  /** Nodes to pause the run before or after, for a look at its State. */
  readonly breakpoints?: Breakpoints;
  /** How much of the ledger a run keeps. */
  readonly ledger?: LedgerLimits;
  /** Who uses this graph, and what for: told by the events of checkpoints that are saved, loaded or removed. */
  readonly audit?: Audit;
  /** When to save, and where. */
  readonly checkpoint?: CheckpointConfig;
}

/** Nodes at which a run pauses; `resume` without input goes on. */
export interface Breakpoints {
  /** Pause before these nodes run. */
  readonly before?: readonly string[];
  /** Pause after these nodes have completed. */
  readonly after?: readonly string[];
}

/** A config that was checked, with its defaults, names replaced by what they stand for. */
export interface Settings {
  readonly name: string;
  readonly maxIterations: number;
  readonly version: number;
  readonly migrations: Migrations;
  readonly onMismatch: "warn" | "error";
  /** `undefined` when nothing is saved. */
  readonly store: CheckpointStore | undefined;
  readonly interval: number;
  readonly preserve: boolean;
  readonly keep: number | undefined;
  readonly onSaveError: "fail" | "continue";
  readonly triggers: readonly Trigger[];
  readonly breakpoints: Breakpoints | undefined;
  readonly ledger: LedgerLimits;
  readonly audit: Audit;
  readonly bus: EventBus;
  /** How many milliseconds a run may wait in this process; it pauses for longer waits. */
  readonly longestWait: number;
}

const names: Check = check(
  "an array of node names",
  (value) => Array.isArray(value) && value.every((name) => typeof name === "string"),
);

/**
 * Checks a config and fills in the defaults.
 *
 * @throws ConfigError that names the field.
 */
export function resolveConfig(config: GraphConfig): Settings {
  checkOptions("config", config, {
    name: text,
    observer: () => {},
    maxIterations: integer(1, true),
    version: integer(0),
    migrations: checkMigrations,
    onMismatch: oneOf("warn", "error"),
    breakpoints: (name, value) => checkOptions(name, value, { before: names, after: names }),
    ledger: checkLedgerLimits,
    audit: (name, value) => checkOptions(name, value, { actor: text, purpose: text }),
    checkpoint: (name, value) =>
      checkOptions(name, value, {
        store: () => {},
        interval: integer(0),
        preserve: flag,
        keep: checkKeep,
        triggers: checkTriggers,
        onSaveError: oneOf("fail", "continue"),
      }),
  });
  const { name = "graph", observer = "noop", checkpoint = {} } = config;
  const { store = "memory", interval = 0, preserve = false, keep, triggers = [] } = checkpoint;
  const resolved = resolveStore(store);
  return {
    name,
    maxIterations: config.maxIterations ?? 1000,
    version: config.version ?? 0,
    migrations: config.migrations ?? {},
    onMismatch: config.onMismatch ?? "warn",
    store: interval > 0 || triggers.length > 0 ? resolved : undefined,
    interval: interval > 0 ? interval : Number.POSITIVE_INFINITY,
    preserve,
    keep,
    onSaveError: checkpoint.onSaveError ?? "fail",
    triggers,
    breakpoints: config.breakpoints,
    ledger: config.ledger ?? {},
    audit: Object.freeze({ ...config.audit }),
    bus: resolveObservers(observer),
    longestWait: Number.POSITIVE_INFINITY,
  };
}

function resolveStore(store: string | CheckpointStore): CheckpointStore {
  if (typeof store === "string") return getCheckpointStore(store);
  if (isCheckpointStore(store)) return store;
  throw new ConfigError(
    "config.checkpoint.store",
    `wants a name or a CheckpointStore, got ${show(store)}`,
  );
}

function resolveObservers(config: ObserverConfig): EventBus {
  const bus = new EventBus();
  for (const one of Array.isArray(config) ? config : [config]) {
    if (one === undefined) continue;
    const observer: unknown = typeof one === "string" ? getObserver(one) : one;
    if (!isObserver(observer)) {
      throw new ConfigError(
        "config.observer",
        `wants a name, a function or an object with onEvent, got ${show(observer)}`,
      );
    }
    if (observer !== noopObserver) observe(bus, observer);
  }
  return bus;
}
