import { type Deferred, defer, unlessAborted } from "../../concurrency.js";
import { ExecutionError, isWaymarkError, messageOf } from "../../errors.js";
import type { AnyEvent } from "../../events.js";
import type { State } from "../../state/state.js";
import type { RunSession } from "../loop/loop.js";
import type { Runner } from "../runner.js";
import type { SavedGraph } from "../saved-graph.js";
import type { RunHandle } from "./handle.js";
import { type Beginning, type Look, type RunSource, SourceHandle } from "./source.js";
import { stepEvent } from "./step-events.js";
import { StoredSource } from "./stored.js";

/** How many ended runs are kept, for callers that attach late. */
const MOST_ENDED = 100;

/** The handles of a graph's runs. */
export class Handles<D extends object> {
  readonly #graph: SavedGraph<D>;
  readonly #runner: Runner<D>;
  /** The runs in progress, by run id. */
  readonly #active = new Map<string, LocalSource<D>>();
  /** The runs that have ended, newest last. */
  readonly #ended = new Map<string, LocalSource<D>>();

  constructor(graph: SavedGraph<D>, runner: Runner<D>) {
    this.#graph = graph;
    this.#runner = runner;
  }

  /** Whether the graph saves its runs. */
  get #saves(): boolean {
    return this.#graph.settings.store !== undefined;
  }

  /** The handle of a run in this process or in another one. */
  attach(runId: string): RunHandle<D> {
    const session = this.#runner.session(runId);
    const active = this.#active.get(runId);
    if (active !== undefined && (session === undefined || active.session === session)) {
      return active.handle;
    }
    if (session !== undefined) return this.add(session);
    const ended = this.#ended.get(runId);
    if (ended !== undefined && !(ended.isResumable && this.#saves)) return ended.handle;
    return new SourceHandle(new StoredSource(runId, this.#graph, this.#answerOf(runId)));
  }

  /**
   * The handle of a run that begins, and emits nothing before the next microtask, or of one in progress.
   *
   * @param savedBy - the event that shows that it is in the store; `undefined` if it already is.
   */
  add(session: RunSession<D>, savedBy?: AnyEvent["type"]): RunHandle<D> {
    const { runId } = session;
    const { bus, name } = this.#graph.settings;
    const awaited = this.#saves ? savedBy : undefined;
    const run = new LocalSource(session, name, this.#answerOf(runId), awaited);
    this.#active.set(runId, run);
    bus.on("*", this.#hear);
    this.#ended.delete(runId);
    run.ended.then(() => {
      if (this.#active.get(runId) !== run) return;
      this.#active.delete(runId);
      this.#ended.set(runId, run);
      const [oldest] = this.#ended.keys();
      if (this.#ended.size > MOST_ENDED && oldest !== undefined) this.#ended.delete(oldest);
      if (this.#active.size === 0) bus.off("*", this.#hear);
    });
    return run.handle;
  }

  #answerOf(runId: string): RunHandle<D>["answer"] {
    return (name, value) => this.#runner.answer(runId, name, value);
  }

  readonly #hear = (event: AnyEvent): void => {
    this.#active.get(event.runId)?.hear(event);
  };
}

/** How many events of a run are kept. */
const MOST = 10_000;

/** How a run ended: with a State or an error. */
interface Outcome<D extends object> {
  readonly state?: State<D>;
  readonly error?: unknown;
}

/** A run of this process. */
class LocalSource<D extends object> implements RunSource<D> {
  readonly runId: string;
  readonly session: RunSession<D>;
  readonly saved: Promise<void>;
  readonly handle: RunHandle<D>;
  /** Resolves when the run has ended, in whatever way. */
  readonly ended: Promise<void>;
  readonly answer: RunSource<D>["answer"];
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
    session: RunSession<D>,
    graph: string,
    answer: RunSource<D>["answer"],
    savedBy: AnyEvent["type"] | undefined,
  ) {
    const { runId, loop } = session;
    this.runId = runId;
    this.session = session;
    this.saved = this.#saved.promise;
    this.handle = new SourceHandle(this);
    this.answer = answer;
    this.#savedBy = savedBy;
    this.#buffer = new EventBuffer(
      loop?.state.steps.map((record) => stepEvent(record, runId, graph)),
    );
    // Not awaiting `saved` must not cause an unhandled rejection.
    this.saved.catch(() => {});
    if (savedBy === undefined) this.#saved.resolve();
    const end = (outcome: Outcome<D>): void => {
      this.#outcome = outcome;
      if (outcome.state === undefined) this.#saved.reject(outcome.error);
      else this.#saved.resolve();
      this.#buffer.end();
    };
    this.ended = session.result.then(
      (state) => end({ state }),
      (error: unknown) => end({ error }),
    );
  }

  /** Whether the run, once it has ended, can still be resumed, perhaps in another process. */
  get isResumable(): boolean {
    return this.#outcome?.state?.status !== "completed";
  }

  /** Receives an event of the run. */
  hear(event: AnyEvent): void {
    if (event.type === this.#savedBy) this.#saved.resolve();
    this.#buffer.add(event);
  }

  async look(): Promise<Look> {
    const at = this.session.loop?.state;
    if (this.#outcome === undefined) return { state: "running", at };
    const { state, error } = this.#outcome;
    if (state !== undefined) {
      return { state: state.status === "paused" ? "paused" : "completed", at: state };
    }
    const last = error instanceof ExecutionError ? error.state : at;
    if (isWaymarkError(error, "ABORTED")) return { state: "cancelled", at: last };
    return { state: "failed", at: last, error: messageOf(error) };
  }

  follow(from: Beginning, signal: AbortSignal): AsyncGenerator<AnyEvent, void, undefined> {
    return this.#buffer.read(from, signal);
  }

  end(): Promise<State<D>> {
    return this.session.result;
  }

  async stop(): Promise<boolean> {
    this.session.abort(new DOMException("the run was cancelled", "AbortError"));
    const last = await this.session.result.catch(() => undefined);
    return last?.status !== "completed";
  }
}

/** The newest events of one run, for any number of readers, each at its own position. */
class EventBuffer {
  #events: AnyEvent[];
  /** How many events were dropped from the front. */
  #dropped = 0;
  #ended = false;
  #more: Deferred<void> | undefined;

  constructor(before: readonly AnyEvent[] = []) {
    this.#events = [...before];
  }

  add(event: AnyEvent): void {
    this.#events.push(event);
    // In bulk: dropping them one by one would move the whole array each time.
    if (this.#events.length >= 2 * MOST) {
      this.#events = this.#events.slice(-MOST);
      this.#dropped += MOST;
    }
    this.#wake();
  }

  /** Ends the stream for all readers. */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** The events from the start or from now on, until the last. A reader that is too slow misses the oldest. */
  read(from: "start" | "now", signal: AbortSignal): AsyncGenerator<AnyEvent, void, undefined> {
    return this.#read(from === "start" ? 0 : this.#dropped + this.#events.length, signal);
  }

  async *#read(first: number, signal: AbortSignal): AsyncGenerator<AnyEvent, void, undefined> {
    for (let next = first; ; ) {
      signal.throwIfAborted();
      next = Math.max(next, this.#dropped);
      const event = this.#events[next - this.#dropped];
      if (event !== undefined) {
        next++;
        yield event;
      } else if (this.#ended) {
        return;
      } else {
        this.#more ??= defer();
        await unlessAborted(this.#more.promise, signal);
      }
    }
  }

  #wake(): void {
    const more = this.#more;
    this.#more = undefined;
    more?.resolve();
  }
}
