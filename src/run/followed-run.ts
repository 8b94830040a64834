import type { CheckpointStore } from "../checkpoint/store.js";
import { sleep } from "../clock.js";
import { CheckpointConflictError, ExecutionError, isWaymarkError, show } from "../errors.js";
import type { AnyEvent, EventTail } from "../events.js";
import type { State } from "../state/state.js";
import { Checkpoints } from "./checkpoints.js";
import {
  checkEventsOptions,
  checkWaitOptions,
  type EventsOptions,
  type RunHandle,
  type RunState,
  type WaitOptions,
} from "./handle.js";
import type { SavedGraph } from "./saved-graph.js";
import { eventOf, lastEvent, stepEvent } from "./step-events.js";

/** How often to poll a run that changes, and one that does not, in milliseconds. */
const OFTEN = 50;
const RARELY = 1000;

/** A run as the store has it: its State, and whether a process is working on it. */
interface Snapshot<D extends object> {
  readonly state: State<D> | undefined;
  /** Also `true` if the store can't tell. */
  readonly isHeld: boolean;
}

/** The result of one poll. */
interface Look<D extends object> extends Snapshot<D> {
  /** Whether anything was new; then the next poll is soon. */
  isNew: boolean;
}

/** The handle of a run that this process does not work on. It reads the store, and the event log if there is one. */
export class FollowedRun<D extends object> implements RunHandle<D> {
  readonly runId: string;
  /** See {@link StateGraph.answer}. */
  readonly answer: (name: string, value: unknown) => Promise<void>;
  readonly #graph: SavedGraph<D>;

  constructor(runId: string, graph: SavedGraph<D>, answer: FollowedRun<D>["answer"]) {
    this.runId = runId;
    this.#graph = graph;
    this.answer = answer;
  }

  get saved(): Promise<void> {
    const saved = this.#untilSaved();
    saved.catch(() => {});
    return saved;
  }

  async #untilSaved(): Promise<void> {
    for await (const { state } of this.#looks(undefined)) if (state !== undefined) return;
    await this.#newest();
  }

  async status(): Promise<RunState> {
    const { state, isHeld } = await this.#snapshot();
    if (state === undefined) {
      return { state: isHeld ? "running" : "unknown", node: "", step: 0, pauses: [] };
    }
    const { status, checkpointNode: node, step, pauses, error } = state;
    const isOpen = status === "pending" || status === "in_progress";
    return {
      state: isHeld ? "running" : isOpen ? "cancelled" : status,
      node,
      step,
      pauses,
      ...(error !== undefined && { error: error.message }),
    };
  }

  async result(options: WaitOptions = {}): Promise<State<D>> {
    checkWaitOptions(options);
    let last: State<D> | undefined;
    for await (const { state } of this.#looks(options.signal)) last = state;
    if (last === undefined || last.status === "completed" || last.status === "paused") {
      const state = await this.#newest();
      const hasEnded = state.status === "completed" || state.status === "paused";
      return hasEnded ? state : this.result(options);
    }
    const { error } = last;
    const place = { nodeName: error?.node ?? last.checkpointNode, state: last, path: [] };
    if (error !== undefined) {
      const cause = Object.assign(new Error(error.message), { name: error.name });
      const message = `node ${show(error.node)} failed: ${error.message}`;
      throw new ExecutionError("NODE_FAILED", message, { ...place, cause });
    }
    const message = `run ${show(this.runId)} is unfinished, and nobody works on it: resume it`;
    throw new ExecutionError("ABORTED", message, place);
  }

  events(options: EventsOptions = {}): AsyncGenerator<AnyEvent, void, undefined> {
    checkEventsOptions(options);
    return this.#events(options);
  }

  async *#events({
    from = "now",
    signal,
  }: EventsOptions): AsyncGenerator<AnyEvent, void, undefined> {
    const { name, tail: open } = this.#graph.settings;
    const tail = open?.(this.runId, from) ?? checkpointTail(from);
    let last: State<D> | undefined;
    for await (const look of this.#looks(signal)) {
      last = look.state ?? last;
      for await (const event of tail.next(
        look.state === undefined ? [] : this.#known(look.state),
      )) {
        look.isNew = true;
        yield event;
      }
    }
    yield* tail.end(last && lastEvent(last, name), signal);
  }

  /** The events that can be derived from a State. */
  #known({ runId, startedAt, steps }: State<D>): AnyEvent[] {
    const { settings, topology } = this.#graph;
    const start = { entryPoint: topology.entry?.name ?? "", step: 0, resumed: false };
    return [
      eventOf("graph.start", settings.name, runId, start, startedAt),
      ...steps.map((record) => stepEvent(record, runId, settings.name)),
    ];
  }

  async cancel(): Promise<boolean> {
    const { state, isHeld } = await this.#snapshot();
    if (state === undefined ? !isHeld : state.status === "completed") return false;
    if (!isHeld) return true;
    const store = await this.#graph.store();
    const holder = await store.holder?.(this.runId).catch(() => undefined);
    throw new CheckpointConflictError(this.runId, 0, 0, { holder });
  }

  /** The newest State as a resume would use it: migrated and validated. */
  #newest(): Promise<State<D>> {
    return new Checkpoints(this.#graph).load(this.runId, {});
  }

  /** Polls the run until it has stopped. */
  async *#looks(signal: AbortSignal | undefined): AsyncGenerator<Look<D>, void, undefined> {
    let sequence = -1;
    let idle = 0;
    for (let wait = OFTEN; ; wait = Math.min(wait * 2, RARELY)) {
      signal?.throwIfAborted();
      const { state, isHeld } = await this.#snapshot();
      const now = state?.sequence ?? 0;
      const look = { state, isHeld, isNew: now !== sequence };
      sequence = now;
      yield look;
      // Between two polls a run may be saved and released.
      idle = isHeld || look.isNew ? 0 : idle + 1;
      if (look.isNew) wait = OFTEN;
      if (state === undefined ? !isHeld : hasStopped(state) || idle > 1) return;
      await (signal === undefined ? sleep(wait) : sleep(wait, signal));
    }
  }

  async #snapshot(): Promise<Snapshot<D>> {
    const store = await this.#graph.store();
    let state = await this.#load(store);
    if (state !== undefined && hasStopped(state)) return { state, isHeld: false };
    const holder = await store.holder?.(this.runId).catch(() => undefined);
    const isHeld = store.holder === undefined ? state !== undefined : holder !== undefined;
    // It may have been saved for the first time meanwhile.
    if (state === undefined) state = await this.#load(store);
    return { state, isHeld };
  }

  async #load(store: CheckpointStore): Promise<State<D> | undefined> {
    try {
      return await store.load<D>(this.runId);
    } catch (error) {
      if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return undefined;
      throw error;
    }
  }
}

/** New events, derived from checkpoints alone. */
function checkpointTail(from: "start" | "now"): EventTail {
  let given = from === "start" ? -1 : Number.POSITIVE_INFINITY;
  return {
    next: (known) => {
      const steps = known.map(({ data }) => Number("step" in data ? data.step : 0));
      const fresh = known.filter((_, at) => Number(steps[at]) > given);
      given = steps.at(-1) ?? Math.min(given, 0);
      return fresh;
    },
    end: (last) => (last === undefined ? [] : [last]),
  };
}

/** Whether a run has completed, failed or paused. */
function hasStopped<D extends object>({ status }: State<D>): boolean {
  return status === "completed" || status === "paused" || status === "failed";
}
