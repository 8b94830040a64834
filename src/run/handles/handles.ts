import type { AnyEvent } from "../../events.js";
import type { RunSession } from "../loop/loop.js";
import type { Runner } from "../runner.js";
import type { SavedGraph } from "../saved-graph.js";
import type { RunHandle } from "./handle.js";
import { LocalSource } from "./local.js";
import { SourceHandle } from "./source.js";
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
    const answer: RunHandle<D>["answer"] = (name, value) => this.#runner.answer(runId, name, value);
    return new SourceHandle(new StoredSource(runId, this.#graph, answer));
  }

  /**
   * The handle of a run that begins, and emits nothing before the next microtask, or of one in progress.
   *
   * @param savedBy - the event that shows that it is in the store; `undefined` if it already is.
   */
  add(session: RunSession<D>, savedBy?: AnyEvent["type"]): RunHandle<D> {
    const { runId } = session;
    const { bus, name } = this.#graph.settings;
    const run = new LocalSource(this.#runner, session, name, this.#saves ? savedBy : undefined);
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

  readonly #hear = (event: AnyEvent): void => {
    this.#active.get(event.runId)?.hear(event);
  };
}
