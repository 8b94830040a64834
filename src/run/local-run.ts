import { defer, unlessAborted } from "../concurrency.js";
import { ExecutionError, isWaymarkError, messageOf } from "../errors.js";
import type { AnyEvent } from "../events.js";
import type { State } from "../state/state.js";
import { EventBuffer } from "./event-buffer.js";
import {
  checkEventsOptions,
  checkWaitOptions,
  type EventsOptions,
  type RunHandle,
  type RunState,
  type WaitOptions,
} from "./handle.js";
import type { RunSession } from "./session.js";

/** The parts of a handle of a run in this process. */
export interface LocalRunOptions<D extends object> {
  readonly session: RunSession<D>;
  readonly result: Promise<State<D>>;
  /** The event that shows that the run is in the store; `undefined` if it already is, or nothing is saved. */
  readonly savedBy: AnyEvent["type"] | undefined;
  /** The known earlier events. */
  readonly before?: readonly AnyEvent[];
  /** See {@link StateGraph.answer}. */
  readonly answer: (name: string, value: unknown) => Promise<void>;
}

/** How a run ended. */
type Outcome<D extends object> = { readonly state: State<D> } | { readonly error: unknown };

/** The handle of a run in this process. */
export class LocalRun<D extends object> implements RunHandle<D> {
  readonly runId: string;
  readonly saved: Promise<void>;
  readonly #options: LocalRunOptions<D>;
  readonly #buffer: EventBuffer;
  readonly #saved = defer();
  #outcome: Outcome<D> | undefined;

  constructor(options: LocalRunOptions<D>) {
    this.runId = options.session.runId;
    this.#options = options;
    this.#buffer = new EventBuffer(options.before);
    this.saved = this.#saved.promise;
    // Not awaiting `saved` must not cause an unhandled rejection.
    this.saved.catch(() => {});
    if (options.savedBy === undefined) this.#saved.resolve();
    options.result.then(
      (state) => {
        this.#outcome = { state };
        this.#saved.resolve();
        this.#buffer.end();
      },
      (error: unknown) => {
        this.#outcome = { error };
        this.#saved.reject(error);
        this.#buffer.end();
      },
    );
  }

  /** How the run ended; `undefined` while it is under way. */
  get outcome(): Outcome<D> | undefined {
    return this.#outcome;
  }

  /** Receives an event of the run. */
  hear(event: AnyEvent): void {
    if (event.type === this.#options.savedBy) this.#saved.resolve();
    this.#buffer.add(event);
  }

  async status(): Promise<RunState> {
    const outcome = this.#outcome;
    if (outcome === undefined) {
      return { state: "running", ...nodeAndStep(this.#options.session.state), pauses: [] };
    }
    if ("state" in outcome) {
      const { status, pauses } = outcome.state;
      const state = status === "paused" ? "paused" : "completed";
      return { state, ...nodeAndStep(outcome.state), pauses };
    }
    const { error } = outcome;
    const state = error instanceof ExecutionError ? error.state : this.#options.session.state;
    const isCancelled = isWaymarkError(error, "ABORTED");
    return {
      state: isCancelled ? "cancelled" : "failed",
      ...nodeAndStep(state),
      pauses: [],
      ...(!isCancelled && { error: messageOf(error) }),
    };
  }

  async result(options: WaitOptions = {}): Promise<State<D>> {
    checkWaitOptions(options);
    return unlessAborted(this.#options.result, options.signal);
  }

  events(options: EventsOptions = {}): AsyncGenerator<AnyEvent, void, undefined> {
    checkEventsOptions(options);
    return this.#buffer.read(options.from ?? "now", options.signal);
  }

  async cancel(): Promise<boolean> {
    const { session, result } = this.#options;
    session.control.abort(new DOMException("the run was cancelled", "AbortError"));
    const last = await result.catch(() => undefined);
    return last?.status !== "completed";
  }

  answer(name: string, value: unknown): Promise<void> {
    return this.#options.answer(name, value);
  }
}

function nodeAndStep(
  state: { readonly checkpointNode: string; readonly step: number } | undefined,
): Pick<RunState, "node" | "step"> {
  return { node: state?.checkpointNode ?? "", step: state?.step ?? 0 };
}
