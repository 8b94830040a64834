import { now } from "../clock.js";
import { ConfigError } from "../errors.js";
import { check, checkOptions, text } from "../options.js";
import { encode } from "../state/encode.js";
import { freezeCopy } from "../state/freeze-copy.js";
import type { PauseRequest } from "../state/pauses.js";
import { isSchema, jsonSchemaOf, type StandardSchema } from "../state/schema.js";
import { isPlainObject } from "../state/shape.js";
import { checkState, type Patch, type State } from "../state/state.js";

/** The question that a pause asks. */
export interface PauseQuestion {
  /** Why the run waits. */
  readonly reason: string;
  /** What is asked, as any data. If given, `resume` needs `input`. */
  readonly ask?: unknown;
  /**
   * Milliseconds after which the pause can no longer be answered, counted from when it was first asked. No
   * limit by default.
   */
  readonly timeout?: number;
}

/** Options of {@link NodeContext.pause}. */
export interface PauseOptions extends PauseQuestion {
  /** Checks the answer: any Standard Schema. An invalid answer is asked for again. */
  readonly schema?: StandardSchema;
}

/** The same with a schema, which gives the answer its type. */
export interface SchemaPauseOptions<T> extends PauseOptions {
  /** Checks the answer: any Standard Schema. An invalid answer is asked for again. */
  readonly schema: StandardSchema<unknown, T>;
}

/** What checks the input of a node's pauses: all of them, or each by its name. */
export type InputSchemas = StandardSchema | Readonly<Record<string, StandardSchema>>;

/** Options of {@link pause}. */
export interface PauseAfterOptions<D extends object = object> extends PauseQuestion {
  /**
   * The key of the data that receives the input; without it the input is an object that is merged into the
   * data.
   */
  readonly into?: keyof D & string;
  /** Merged into the data by a resume after the timeout. Without it such a resume throws a PauseTimeoutError. */
  readonly onTimeout?: Patch<D>;
}

/**
 * The result of {@link pause}; a node returns it.
 *
 * @example
 * ```ts
 * import { pause, State } from "waymark";
 *
 * const made = pause(State.create({ text: "Cairns" }), { reason: "review", ask: "Publish?" });
 * console.log(made.request.reason, made.state.data.text); // review Cairns
 * ```
 */
export class Pause<D extends object> {
  /** The State that the node has reached. */
  readonly state: State<D>;
  /** What the run waits for. */
  readonly request: PauseRequest;

  /** @internal */
  constructor(state: State<D>, request: PauseRequest) {
    this.state = state;
    this.request = request;
  }
}

/**
 * Ends a node and pauses the run after it. The State is saved, `execute` returns it with the status `paused`,
 * and the process may exit. `resume(runId, { input })` puts the input into the data and continues at the next
 * edge; the node does not run again.
 *
 * @throws ConfigError if an option is invalid.
 * @throws SerializationError if a checkpoint can't hold what is asked.
 *
 * @example
 * ```ts
 * import { MemoryStore, pause, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ text: string; approved: boolean }>({
 *   checkpoint: { store: new MemoryStore(), interval: 1 },
 * })
 *   .addNode("write", (state) => pause(state.set("text", "Cairns"), { reason: "review", ask: "Publish?" }))
 *   .addNode("publish", (state) => state)
 *   .addEdge("write", "publish")
 *   .setEntryPoint("write")
 *   .setExitPoint("publish");
 *
 * const paused = await graph.execute(State.create({ text: "", approved: false }));
 * console.log(paused.status, paused.pauses[0]?.ask); // paused Publish?
 * const final = await graph.resume(paused.runId, { input: { approved: true } });
 * console.log(final.status, final.data.approved); // completed true
 * ```
 */
export function pause<D extends object>(
  state: State<D>,
  options: PauseAfterOptions<NoInfer<D>>,
): Pause<D> {
  checkState(state);
  checkOptions("pause", options, { ...checks, into: text, onTimeout: plainObject });
  const { into, onTimeout, ...rest } = options;
  if (onTimeout !== undefined && rest.timeout === undefined) {
    throw new ConfigError("pause.onTimeout", "needs pause.timeout");
  }
  const deadline = rest.timeout === undefined ? undefined : now() + rest.timeout;
  const request = {
    ...pauseRequest("", rest, deadline),
    ...(into !== undefined && { into }),
    ...(onTimeout !== undefined && { onTimeout: keptOf<object>(onTimeout, "pause.onTimeout") }),
  };
  return new Pause(state, Object.freeze(request));
}

const plainObject = check("a plain object", isPlainObject);

const checks = {
  reason: text,
  ask: () => {},
  timeout: check(
    "a number of milliseconds > 0",
    (value) => typeof value === "number" && value > 0 && value < Number.POSITIVE_INFINITY,
  ),
};

/** Checks the options of a pause inside a node. */
export function checkPauseOptions(options: PauseOptions): void {
  checkOptions("pause", options, { ...checks, schema: check("a Standard Schema", isSchema) });
  text("pause.reason", options.reason);
}

/** The latest time that a Date can hold. */
const END_OF_TIME = 8.64e15;

/** A time as ISO 8601 text, no later than a Date can hold. */
export function momentOf(ms: number): string {
  return new Date(Math.min(ms, END_OF_TIME)).toISOString();
}

/**
 * Makes a request from the options of a pause.
 *
 * @param deadline - when the pause times out, in milliseconds since 1970.
 * @throws SerializationError if a checkpoint can't hold what is asked.
 */
export function pauseRequest(
  name: string,
  options: PauseOptions,
  deadline: number | undefined,
): PauseRequest {
  const { reason, ask, schema } = options;
  text("pause.reason", reason);
  const json = schema && jsonSchemaOf(schema);
  return Object.freeze({
    name,
    reason,
    ...(ask !== undefined && { ask: keptOf(ask, "pause.ask") }),
    ...(json !== undefined && { schema: keptOf<object>(json, "pause.schema") }),
    ...(deadline !== undefined && { deadline: momentOf(deadline) }),
  });
}

/**
 * A frozen copy of a value, once it is known that a checkpoint can hold it.
 *
 * @throws SerializationError, naming it, if it can't.
 */
export function keptOf<T>(value: T, name: string): T {
  const kept = freezeCopy(value) as T;
  encode(kept, name);
  return kept;
}
