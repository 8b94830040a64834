import { ConfigError, show } from "../errors.js";
import { checkOptions, text } from "../options.js";
import { encode } from "../state/encode.js";
import { own } from "../state/own.js";
import type { PauseRequest } from "../state/record.js";
import { State } from "../state/state.js";

/** What a pause says to whoever answers it. */
export interface PauseOptions {
  /** Why the run waits. */
  readonly reason: string;
  /** What is asked, as any data. Where it is given, `resume` wants `input`. */
  readonly ask?: unknown;
}

/** Options of {@link pause}. */
export interface PauseAfterOptions extends PauseOptions {
  /** The key of the data that the input becomes; without it the input is an object that is merged into the data. */
  readonly into?: string;
}

/**
 * What {@link pause} gives; a node returns it.
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
  /** The State that the node has come to. */
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
 * Ends a node and pauses the run after it. The State is saved, `execute` returns it with the status
 * `paused`, and the process may exit. `resume(runId, { input })` puts the input into the data and goes
 * on at the next edge; the node does not run again.
 *
 * @throws ConfigError when an option is not what it must be.
 * @throws SerializationError when a checkpoint can't hold what is asked.
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
export function pause<D extends object>(state: State<D>, options: PauseAfterOptions): Pause<D> {
  if (!(state instanceof State))
    throw new ConfigError("state", `wants a State, got ${show(state)}`);
  checkOptions("pause", options, { ...checks, into: text });
  const { into, ...rest } = options;
  const request = pauseRequest("", rest);
  return new Pause(state, into === undefined ? request : Object.freeze({ ...request, into }));
}

const checks = { reason: text, ask: () => {} };

/**
 * A request out of a pause's options.
 *
 * @throws SerializationError when a checkpoint can't hold what is asked.
 */
export function pauseRequest(name: string, options: PauseOptions): PauseRequest {
  checkOptions("pause", options, checks);
  const { reason, ask } = options;
  text("pause.reason", reason);
  if (ask === undefined) return Object.freeze({ name, reason });
  const kept: unknown = own(ask);
  encode(kept, "pause.ask");
  return Object.freeze({ name, reason, ask: kept });
}
