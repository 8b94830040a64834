import { GraphError, show } from "../errors.js";
import type { AnyEvent, EventBus } from "../events.js";
import type { State } from "../state/state.js";
import { FollowedRun } from "./followed-run.js";
import type { RunHandle } from "./handle.js";
import { LocalRun } from "./local-run.js";
import type { Runner } from "./runner.js";
import type { Running } from "./running.js";
import type { SavedGraph } from "./saved-graph.js";
import { stepEvents } from "./step-events.js";

/** How many runs that have ended are remembered, for those who ask late. */
const MOST_ENDED = 100;

/** What the handles of a graph's runs need. */
export interface HandlesOptions<D extends object> {
  readonly bus: EventBus;
  /** Whether the graph saves its runs. */
  readonly saves: boolean;
  readonly graph: SavedGraph<D>;
  readonly runner: Runner<D>;
  /** The newest State of a run, migrated and validated. */
  readonly load: (runId: string) => Promise<State<D>>;
  readonly signal: (runId: string, name: string, value: unknown) => Promise<void>;
}

/** The handles of a graph's runs in this process. */
export class Handles<D extends object> {
  readonly #options: HandlesOptions<D>;
  /** Those under way, by their runs' ids. */
  readonly #active = new Map<string, { readonly running: Running<D>; readonly run: LocalRun<D> }>();
  /** Those that have ended, the newest last. */
  readonly #ended = new Map<string, LocalRun<D>>();

  constructor(options: HandlesOptions<D>) {
    this.#options = options;
  }

  /** The handle of a run that `start` begins; `savedBy` is the event that says that it is in the store. */
  start(runId: string, savedBy: AnyEvent["type"], start: () => Promise<State<D>>): RunHandle<D> {
    const { runner, saves } = this.#options;
    // A run is known from here on, and emits nothing before the next turn.
    const result = start();
    const running = runner.running(runId);
    if (running === undefined) throw new GraphError("GRAPH_STATE", `run ${show(runId)} is unknown`);
    return this.#add(running, result, saves ? savedBy : undefined, []);
  }

  /** The handle of a run: of this process, or of another one. */
  attach(runId: string): RunHandle<D> {
    const { runner, saves, graph } = this.#options;
    const running = runner.running(runId);
    const active = this.#active.get(runId);
    if (active !== undefined && (running === undefined || active.running === running)) {
      return active.run;
    }
    if (running !== undefined) {
      const { state } = running;
      const { name } = graph.identity;
      const before = state === undefined ? [] : stepEvents(state, name, 0);
      return this.#add(running, runner.resultOf(running), undefined, before);
    }
    const ended = this.#ended.get(runId);
    if (ended?.outcome !== undefined) {
      // One that can be resumed may have gone further since, in another process.
      const isOver = "state" in ended.outcome && ended.outcome.state.status === "completed";
      if (isOver || !saves) return ended;
    }
    const { name, entry: entryPoint } = graph.topology;
    return new FollowedRun<D>({
      runId,
      graph: name,
      entryPoint,
      store: () => graph.store(),
      load: () => this.#options.load(runId),
      signal: (pause, value) => this.#options.signal(runId, pause, value),
    });
  }

  #add(
    running: Running<D>,
    result: Promise<State<D>>,
    savedBy: AnyEvent["type"] | undefined,
    before: readonly AnyEvent[],
  ): LocalRun<D> {
    const { runId } = running;
    const signal = (name: string, value: unknown): Promise<void> =>
      this.#options.signal(runId, name, value);
    const run = new LocalRun({ running, result, savedBy, before, signal });
    const entry = { running, run };
    this.#active.set(runId, entry);
    this.#options.bus.on("*", this.#hear);
    this.#ended.delete(runId);
    const end = (): void => {
      if (this.#active.get(runId) !== entry) return;
      this.#active.delete(runId);
      this.#ended.set(runId, run);
      const [oldest] = this.#ended.keys();
      if (this.#ended.size > MOST_ENDED && oldest !== undefined) this.#ended.delete(oldest);
      if (this.#active.size === 0) this.#options.bus.off("*", this.#hear);
    };
    result.then(end, end);
    return run;
  }

  readonly #hear = (event: AnyEvent): void => {
    this.#active.get(event.runId)?.run.hear(event);
  };
}
