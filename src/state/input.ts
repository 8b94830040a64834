import { ConfigError, show } from "../errors.js";
import { EventBus, type EventSink, isObserver, type Observer, observe } from "../events.js";
import { type Check, check, checkOptions, checkRunId } from "../options.js";
import type { Immutable } from "./immutable.js";
import { checkMetadata, type Metadata } from "./metadata.js";

import { isPlainObject } from "./shape.js";

/** New values for some keys of `D`, as accepted by `merge` and returned by a node. */
export type Patch<D extends object> = { readonly [K in keyof D]?: D[K] | Immutable<D[K]> };

/** Options of {@link State.create}. */
export interface StateOptions {
  /** The id of the run, 1 to 200 characters without control characters; a new uuid v7 by default. */
  readonly runId?: string;
  /** Values for listing and filtering the run; at most 4 KB as JSON. */
  readonly metadata?: Metadata;
  /** Receives the `state.*` events of this State and of all States derived from it. */
  readonly observer?: Observer;
}

const optionChecks: Readonly<Record<keyof StateOptions, Check>> = {
  runId: (_name, value) => {
    checkRunId(value);
  },
  metadata: checkMetadata,
  observer: check("a function or an object with onEvent", isObserver),
};

/** Throws if an option of {@link State.create} is invalid. */
export function checkStateOptions(options: unknown): void {
  checkOptions("options", options, optionChecks);
}

/** The sink that passes a State's events to this observer. */
export function sinkFor(observer: Observer | undefined): EventSink | undefined {
  if (observer === undefined) return undefined;
  const bus = new EventBus();
  observe(bus, observer);
  return bus;
}

/** Throws if the value can't be a State's data or a change of it. */
export function checkData(data: unknown): asserts data is object {
  if (typeof data !== "object" || data === null || !isPlainObject(data)) {
    throw new ConfigError("data", `must be a plain object; got ${show(data)}`);
  }
}
