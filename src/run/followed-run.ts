import type { CheckpointStore } from "../checkpoint/store.js";
import { sleep } from "../clock.js";
import { CheckpointConflictError, ExecutionError, isWaymarkError, show } from "../errors.js";
import type { AnyEvent } from "../events.js";
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
import { eventOf, lastEvent, stepEvents } from "./step-events.js";

/** How often to look at a run that changes, and at one that does not, in milliseconds. */
const OFTEN = 50;
const RARELY = 1000;

/** A run as the store has it: its State, and whether a process works on it. */
interface Snapshot<D extends object> {
  readonly state: State<D> | undefined;
  /** Also `true` if the store can't say. */
  readonly isHeld: boolean;
}

/** The handle of a run that this process does not work on. All it knows comes from the store. */
export class FollowedRun<D extends object> implements RunHandle<D> {
  readonly runId: string;
  /** See {@link StateGraph.signal}. */
  readonly signal: (name: string, value: unknown) => Promise<void>;
  readonly #graph: SavedGraph<D>;

  constructor(runId: string, graph: SavedGraph<D>, signal: FollowedRun<D>["signal"]) {
    this.runId = runId;
    this.#graph = graph;
    this.signal = signal;
  }

  get saved(): Promise<void> {
    const saved = this.#untilSaved();
    saved.catch(() => {});
    return saved;
  }

  async #untilSaved(): Promise<void> {
    for await (const { state } of this.#changes(undefined)) if (state !== undefined) return;
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
    for await (const { state } of this.#changes(options.signal)) last = state;
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

  async *#events({ from, signal }: EventsOptions): AsyncGenerator<AnyEvent, void, undefined> {
    const { settings, topology } = this.#graph;
    const { name: graph } = settings;
    let step = from === "start" ? 0 : undefined;
    let last: State<D> | undefined;
    for await (const { state } of this.#changes(signal)) {
      if (state === undefined) continue;
      if (last === undefined && from === "start") {
        const data = { entryPoint: topology.entry?.name ?? "", step: 0, resumed: false };
        yield eventOf("graph.start", graph, this.runId, data, state.startedAt);
      }
      last = state;
      yield* stepEvents(state, graph, step ?? state.step);
      step = state.step;
    }
    const end = last && lastEvent(last, graph);
    if (end !== undefined) yield end;
  }

  async cancel(): Promise<boolean> {
    const { state, isHeld } = await this.#snapshot();
    if (state?.status === "completed") return false;
    if (!isHeld) return true;
    const store = await this.#graph.store();
    const holder = await store.holder?.(this.runId).catch(() => undefined);
    throw new CheckpointConflictError(this.runId, 0, 0, { holder });
  }

  /** The newest State as a resume takes it: migrated and validated. */
  #newest(): Promise<State<D>> {
    return new Checkpoints(this.#graph).load(this.runId, {});
  }

  /** Yields the run each time it has changed in the store, until it has stopped. */
  async *#changes(signal: AbortSignal | undefined): AsyncGenerator<Snapshot<D>, void, undefined> {
    let sequence = -1;
    let idle = 0;
    for (let wait = OFTEN; ; wait = Math.min(wait * 2, RARELY)) {
      signal?.throwIfAborted();
      const snapshot = await this.#snapshot();
      const now = snapshot.state?.sequence ?? 0;
      const isNew = now !== sequence;
      // Between two looks a run may be saved and let go.
      idle = snapshot.isHeld || isNew ? 0 : idle + 1;
      if (isNew) {
        sequence = now;
        wait = OFTEN;
        yield snapshot;
      }
      const { state } = snapshot;
      if (state === undefined ? !snapshot.isHeld : hasStopped(state) || idle > 1) return;
      await (signal === undefined ? sleep(wait) : sleep(wait, signal));
    }
  }

  async #snapshot(): Promise<Snapshot<D>> {
    const store = await this.#graph.store();
    let state = await this.#load(store);
    if (state !== undefined && hasStopped(state)) return { state, isHeld: false };
    const holder = await store.holder?.(this.runId).catch(() => undefined);
    const isHeld = store.holder === undefined ? state !== undefined : holder !== undefined;
    // It may have been saved for the first time since.
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

/** Whether a run does nothing until somebody resumes it. */
function hasStopped<D extends object>({ status }: State<D>): boolean {
  return status === "completed" || status === "paused" || status === "failed";
}
