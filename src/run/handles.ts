import { GraphError, show } from "../errors.js";
import type { AnyEvent } from "../events.js";
import type { State } from "../state/state.js";
import { FollowedRun } from "./followed-run.js";
import type { RunHandle } from "./handle.js";
import { LocalRun } from "./local-run.js";
import type { Runner } from "./runner.js";
import type { SavedGraph } from "./saved-graph.js";
import type { RunSession } from "./session.js";
import { stepEvent } from "./step-events.js";

/** How many ended runs are kept, for callers that attach late. */
const MOST_ENDED = 100;

/** The handles of a graph's runs in this process. */
export class Handles<D extends object> {
  readonly #graph: SavedGraph<D>;
  readonly #runner: Runner<D>;
  /** The runs in progress, by run id. */
  readonly #active = new Map<
    string,
    { readonly session: RunSession<D>; readonly run: LocalRun<D> }
  >();
  /** The runs that have ended, newest last. */
  readonly #ended = new Map<string, LocalRun<D>>();

  constructor(graph: SavedGraph<D>, runner: Runner<D>) {
    this.#graph = graph;
    this.#runner = runner;
  }

  /** Whether the graph saves its runs. */
  get #saves(): boolean {
    return this.#graph.settings.store !== undefined;
  }

  /** The handle of a run that `start` begins; `savedBy` is the event that shows that it is in the store. */
  start(runId: string, savedBy: AnyEvent["type"], start: () => Promise<State<D>>): RunHandle<D> {
    // From here on the run is known; it emits nothing before the next microtask.
    const result = start();
    const session = this.#runner.session(runId);
    if (session === undefined) throw new GraphError("GRAPH_STATE", `run ${show(runId)} is unknown`);
    return this.#add(session, result, this.#saves ? savedBy : undefined, []);
  }

  /** The handle of a run in this process or in another one. */
  attach(runId: string): RunHandle<D> {
    const session = this.#runner.session(runId);
    const active = this.#active.get(runId);
    if (active !== undefined && (session === undefined || active.session === session)) {
      return active.run;
    }
    if (session !== undefined) {
      const { steps = [] } = session.state ?? {};
      const { name } = this.#graph.settings;
      const before = steps.map((record) => stepEvent(record, runId, name));
      return this.#add(session, this.#runner.resultOf(session), undefined, before);
    }
    const ended = this.#ended.get(runId);
    if (ended?.outcome !== undefined) {
      // An unfinished run may have continued in another process since.
      const isOver = "state" in ended.outcome && ended.outcome.state.status === "completed";
      if (isOver || !this.#saves) return ended;
    }
    return new FollowedRun<D>(runId, this.#graph, (pause, value) =>
      this.#runner.answer(runId, pause, value),
    );
  }

  #add(
    session: RunSession<D>,
    result: Promise<State<D>>,
    savedBy: AnyEvent["type"] | undefined,
    before: readonly AnyEvent[],
  ): LocalRun<D> {
    const { runId } = session;
    const answer = (name: string, value: unknown): Promise<void> =>
      this.#runner.answer(runId, name, value);
    const run = new LocalRun({ session, result, savedBy, before, answer });
    const entry = { session, run };
    this.#active.set(runId, entry);
    this.#graph.settings.bus.on("*", this.#hear);
    this.#ended.delete(runId);
    const end = (): void => {
      if (this.#active.get(runId) !== entry) return;
      this.#active.delete(runId);
      this.#ended.set(runId, run);
      const [oldest] = this.#ended.keys();
      if (this.#ended.size > MOST_ENDED && oldest !== undefined) this.#ended.delete(oldest);
      if (this.#active.size === 0) this.#graph.settings.bus.off("*", this.#hear);
    };
    result.then(end, end);
    return run;
  }

  readonly #hear = (event: AnyEvent): void => {
    this.#active.get(event.runId)?.run.hear(event);
  };
}
