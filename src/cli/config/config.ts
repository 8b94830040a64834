import { type CheckpointStore, isCheckpointStore } from "../../checkpoint/store.js";
import { checkRedaction, type Redaction } from "../../codecs/patterns.js";
import type { CodecOptions } from "../../codecs/pipeline.js";
import { ConfigError, messageOf, show } from "../../errors.js";
import { checkObserver, type Observer } from "../../events.js";
import { checkOptions, text } from "../../options.js";

/** A store in a config: an address, an address with a codec, or the store itself. */
export type StoreConfig =
  | string
  | { readonly store: string; readonly codec?: CodecOptions }
  | CheckpointStore;

/** The contents of `waymark.config.ts`, `.mts`, `.js`, `.mjs` or `.json`. */
export interface Config {
  /** The store to use: an address or one of `stores`. */
  readonly store?: StoreConfig;
  /** Stores by name, for `--store NAME`. */
  readonly stores?: Readonly<Record<string, StoreConfig>>;
  /** Graphs by name: a StateGraph, a function that makes one, or `./module.ts#export`. */
  readonly graphs?: Readonly<Record<string, unknown>>;
  /** How checkpoints are compressed and encrypted, in stores that are given by an address. */
  readonly codec?: CodecOptions;
  /** What is never printed, as `redact` of `waymark/codecs` takes it. */
  readonly redact?: Redaction;
  /** Receives the loads, saves and removals that the command makes, with the actor. */
  readonly observer?: Observer;
  /**
   * Where the event log is: a folder with one log per run, or a single file. The store's own folder by default.
   */
  readonly log?: string;
}

/** A config, and where it was read from. */
export interface LoadedConfig extends Config {
  /** Its file; `""` when there is none. */
  readonly file: string;
  /** The folder that paths in it start from. */
  readonly folder: string;
}

/**
 * Checks the contents of a config file.
 *
 * @throws ConfigError that names the field, what it must be and what it got.
 */
export function configOf(file: string, value: unknown): Config {
  let redact: Redaction | undefined;
  checkOptions(file, value, {
    store: checkStore,
    stores: (name, stores) => {
      for (const [key, store] of entries(name, stores)) checkStore(`${name}.${key}`, store);
    },
    graphs: (name, graphs) => {
      entries(name, graphs);
    },
    codec: () => {},
    redact: (name, given) => {
      redact = redactionOf(name, given);
    },
    observer: checkObserver,
    log: text,
  });
  return { ...(value as Config), ...(redact !== undefined && { redact }) };
}

/** What to redact. A string may hold a regular expression, which JSON can't express otherwise: `"/sk-\\w+/i"`. */
function redactionOf(name: string, value: unknown): Redaction {
  const given: unknown = Array.isArray(value)
    ? value.map((one, at) => expression(`${name}[${at}]`, one))
    : value;
  checkRedaction(name, given);
  return given as Redaction;
}

function expression(name: string, value: unknown): unknown {
  const [, source, flags] = (typeof value === "string" && /^\/(.+)\/([a-z]*)$/.exec(value)) || [];
  if (source === undefined) return value;
  try {
    return new RegExp(source, flags);
  } catch (error) {
    throw new ConfigError(name, `must be an expression; got ${show(value)}: ${messageOf(error)}`);
  }
}

function checkStore(name: string, value: unknown): void {
  if (isCheckpointStore(value)) return;
  if (typeof value === "object" && value !== null) {
    checkOptions(name, value, { store: text, codec: () => {} });
    text(`${name}.store`, Reflect.get(value, "store"));
  } else {
    text(name, value);
  }
}

function entries(name: string, value: unknown): [string, unknown][] {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return Object.entries(value);
  }
  throw new ConfigError(name, `must be an object; got ${show(value)}`);
}
