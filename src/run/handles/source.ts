import { sleep } from "../../clock.js";
import { abortWith, during } from "../../concurrency.js";
import type { AnyEvent } from "../../events.js";
import { abortSignal, checkOptions, oneOf } from "../../options.js";
import type { PauseRequest } from "../../state/pauses.js";
import { defined } from "../../state/shape.js";
import type { State } from "../../state/state.js";
import type { EventsOptions, RunHandle, RunState, WaitOptions } from "./handle.js";
import { leavable } from "./stream.js";

/** A run at one moment. */
export interface Look extends Pick<RunState, "state"> {
  /** Its newest State, as far as it is known. */
  readonly at:
    | (Pick<State<object>, "checkpointNode" | "step"> & {
        readonly pauses?: readonly PauseRequest[];
      })
    | undefined;
  readonly error?: string | undefined;
  readonly refused?: string | undefined;
}

/** Whether to follow a run from its start or from now on. */
export type Beginning = NonNullable<EventsOptions["from"]>;

/** Where a handle gets its run from: this process, the store and the log, or a queue. */
export interface RunSource<D extends object> extends Pick<RunHandle<D>, "runId" | "answer"> {
  /** See {@link RunHandle.saved}; by default the run is saved as soon as it has a State. */
  readonly saved?: Promise<void>;
  /** Aborts, with the reason, when the run can't be reached from here any more. */
  readonly closed?: AbortSignal;
  look(): Promise<Look>;
  /** See {@link RunHandle.events}. */
  follow(from: Beginning, signal: AbortSignal): AsyncGenerator<AnyEvent, void, undefined>;
  /** See {@link RunHandle.result}. */
  end(signal: AbortSignal): Promise<State<D>>;
  /** See {@link RunHandle.cancel}. */
  stop(): Promise<boolean>;
}

const waitChecks = { signal: abortSignal };
const eventsChecks = { ...waitChecks, from: oneOf("start", "now") };

/** The handle of a run, wherever that runs. */
export class SourceHandle<D extends object> implements RunHandle<D> {
  readonly runId: string;
  readonly #source: RunSource<D>;

  constructor(source: RunSource<D>) {
    this.runId = source.runId;
    this.#source = source;
  }

  get saved(): Promise<void> {
    const saved = this.#source.saved ?? this.during((signal) => this.#untilSaved(signal));
    // Not awaiting it must not cause an unhandled rejection.
    saved.catch(() => {});
    return saved;
  }

  async #untilSaved(signal: AbortSignal): Promise<void> {
    for (let wait = 50; ; wait = Math.min(wait * 2, 2000)) {
      const { at, state } = await this.#source.look();
      if (at !== undefined) return;
      if (state === "unknown" || state === "failed") break;
      await sleep(wait, signal);
    }
    await this.#source.end(signal);
  }

  async status(): Promise<RunState> {
    const { state, at, error, refused } = await this.during(() => this.#source.look());
    const { checkpointNode: node = "", step = 0, pauses = [] } = at ?? {};
    return defined({ state, node, step, pauses, error, refused });
  }

  async result(options: WaitOptions = {}): Promise<State<D>> {
    checkOptions("options", options, waitChecks);
    return this.during((signal) => this.#source.end(signal), options.signal);
  }

  events(options: EventsOptions = {}): AsyncGenerator<AnyEvent, void, undefined> {
    checkOptions("options", options, eventsChecks);
    const controller = new AbortController();
    const events = this.#source.follow(options.from ?? "now", controller.signal);
    const signals = [options.signal, this.#source.closed];
    // Until one of the signals aborts, or the controller by itself, because the reader has left.
    async function* read(): AsyncGenerator<AnyEvent, void, undefined> {
      const ignore = abortWith(controller, ...signals);
      try {
        controller.signal.throwIfAborted();
        yield* events;
      } catch (error) {
        const hasLeft = controller.signal.aborted && !signals.some((signal) => signal?.aborted);
        if (!hasLeft) throw error;
      } finally {
        ignore();
      }
    }
    return leavable(read(), controller);
  }

  async cancel(): Promise<boolean> {
    return this.during(() => this.#source.stop());
  }

  async answer(name: string, value: unknown): Promise<void> {
    return this.during(() => this.#source.answer(name, value));
  }

  /** Works as long as the run can be reached, and the caller waits. */
  protected during<T>(work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return during(work, signal, this.#source.closed);
  }
}
