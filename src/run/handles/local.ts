import { defer } from "../../concurrency.js";
import { ExecutionError, isWaymarkError, messageOf } from "../../errors.js";
import type { AnyEvent } from "../../events.js";
import type { State } from "../../state/state.js";
import type { RunSession } from "../loop/loop.js";
import type { Runner } from "../runner.js";
import { EventBuffer } from "./event-buffer.js";
import type { RunHandle } from "./handle.js";
import { type Beginning, type Look, type RunSource, SourceHandle } from "./source.js";
import { stepEvent } from "./step-events.js";

/** How a run ended. */
type Outcome<D extends object> = { readonly state: State<D> } | { readonly error: unknown };

/** A run of this process. */
export class LocalSource<D extends object> implements RunSource<D> {
  readonly runId: string;
  readonly session: RunSession<D>;
  readonly saved: Promise<void>;
  readonly handle: RunHandle<D>;
  /** Resolves when the run has ended, in whatever way. */
  readonly ended: Promise<void>;
  readonly answer: RunSource<D>["answer"];
  readonly #result: Promise<State<D>>;
  readonly #savedBy: AnyEvent["type"] | undefined;
  readonly #buffer: EventBuffer;
  readonly #saved = defer();
  #outcome: Outcome<D> | undefined;

  /**
   * @param graph - the name of its graph.
   * @param savedBy - the event that shows that the run is in the store; `undefined` if it already is, or nothing is
   *   saved.
   */
  constructor(
    runner: Runner<D>,
    session: RunSession<D>,
    graph: string,
    savedBy: AnyEvent["type"] | undefined,
  ) {
    const { runId, loop } = session;
    this.runId = runId;
    this.session = session;
    this.saved = this.#saved.promise;
    this.handle = new SourceHandle(this);
    this.answer = (name, value) => runner.answer(runId, name, value);
    this.#result = runner.resultOf(session);
    this.#savedBy = savedBy;
    this.#buffer = new EventBuffer(
      loop?.state.steps.map((record) => stepEvent(record, runId, graph)),
    );
    // Not awaiting `saved` must not cause an unhandled rejection.
    this.saved.catch(() => {});
    if (savedBy === undefined) this.#saved.resolve();
    const end = (outcome: Outcome<D>): void => {
      this.#outcome = outcome;
      if ("error" in outcome) this.#saved.reject(outcome.error);
      else this.#saved.resolve();
      this.#buffer.end();
    };
    this.ended = this.#result.then(
      (state) => end({ state }),
      (error: unknown) => end({ error }),
    );
  }

  /** Whether the run has ended so that it can still be resumed, perhaps in another process. */
  get isResumable(): boolean {
    const outcome = this.#outcome;
    if (outcome === undefined) return false;
    return "error" in outcome || outcome.state.status !== "completed";
  }

  /** Receives an event of the run. */
  hear(event: AnyEvent): void {
    if (event.type === this.#savedBy) this.#saved.resolve();
    this.#buffer.add(event);
  }

  async look(): Promise<Look> {
    const outcome = this.#outcome;
    const at = this.session.loop?.state;
    if (outcome === undefined) return { state: "running", at };
    if ("state" in outcome) {
      const { state } = outcome;
      return { state: state.status === "paused" ? "paused" : "completed", at: state };
    }
    const { error } = outcome;
    const last = error instanceof ExecutionError ? error.state : at;
    if (isWaymarkError(error, "ABORTED")) return { state: "cancelled", at: last };
    return { state: "failed", at: last, error: messageOf(error) };
  }

  follow(from: Beginning, signal: AbortSignal): AsyncGenerator<AnyEvent, void, undefined> {
    return this.#buffer.read(from, signal);
  }

  end(): Promise<State<D>> {
    return this.#result;
  }

  async stop(): Promise<boolean> {
    this.session.control.abort(new DOMException("the run was cancelled", "AbortError"));
    const last = await this.#result.catch(() => undefined);
    return last?.status !== "completed";
  }
}
