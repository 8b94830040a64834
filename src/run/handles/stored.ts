import type { CheckpointStore } from "../../checkpoint/store.js";
import { sleep } from "../../clock.js";
import { unlessAborted } from "../../concurrency.js";
import { CheckpointConflictError, ExecutionError, isWaymarkError, show } from "../../errors.js";
import type { AnyEvent, EventTail } from "../../events.js";
import { isUnderWay, type RunError } from "../../state/record.js";
import type { State } from "../../state/state.js";
import type { SavedGraph } from "../saved-graph.js";
import type { Beginning, Look, RunSource } from "./source.js";
import { eventOf, lastEvent, stepEvent } from "./step-events.js";

/** How often to poll a run that changes, and one that does not, in milliseconds. */
const OFTEN = 50;
const RARELY = 1000;

/** A run as the store has it: its State, and whether a process is working on it. */
interface Snapshot<D extends object> {
  readonly state: State<D> | undefined;
  /** Also `true` if the store can't tell. */
  readonly isHeld: boolean;
  /** Whether it differs from the last one. */
  isNew?: boolean;
}

/** A run that this process does not work on, from the store and the event log if there is one. */
export class StoredSource<D extends object> implements RunSource<D> {
  readonly runId: string;
  readonly answer: RunSource<D>["answer"];
  readonly #graph: SavedGraph<D>;

  constructor(runId: string, graph: SavedGraph<D>, answer: RunSource<D>["answer"]) {
    this.runId = runId;
    this.#graph = graph;
    this.answer = answer;
  }

  async look(): Promise<Look> {
    const { state, isHeld } = await this.#snapshot();
    if (state === undefined) return { state: isHeld ? "running" : "unknown", at: undefined };
    const { status, error } = state;
    const now = isHeld ? "running" : isUnderWay(status) ? "cancelled" : status;
    return { state: now, at: state, error: error?.message };
  }

  async *follow(from: Beginning, signal: AbortSignal): AsyncGenerator<AnyEvent, void, undefined> {
    const { name, tail: open } = this.#graph.settings;
    const tail = open?.(this.runId, from) ?? checkpointTail(from);
    let last: State<D> | undefined;
    for await (const look of this.#looks(signal)) {
      last = look.state ?? last;
      for await (const event of tail.next(this.#known(look.state))) {
        look.isNew = true;
        yield event;
      }
    }
    yield* tail.end(last && lastEvent(last, name), signal);
  }

  async end(signal: AbortSignal): Promise<State<D>> {
    let last: State<D> | undefined;
    for await (const { state } of this.#looks(signal)) last = state;
    if (last === undefined || isFinal(last)) {
      // As a resume would use it: migrated and validated.
      const state = await this.#graph.load(this.runId);
      return isFinal(state) ? state : this.end(signal);
    }
    const { error } = last;
    const place = { nodeName: error?.node ?? last.checkpointNode, state: last, path: [] };
    if (error !== undefined) {
      const message = `node ${show(error.node)} failed: ${error.message}`;
      throw new ExecutionError("NODE_FAILED", message, { ...place, cause: errorOf(error) });
    }
    const message = `run ${show(this.runId)} is unfinished, and nobody works on it: resume it`;
    throw new ExecutionError("ABORTED", message, place);
  }

  async stop(): Promise<boolean> {
    const { state, isHeld } = await this.#snapshot();
    if (state === undefined ? !isHeld : state.status === "completed") return false;
    if (!isHeld) return true;
    const store = await this.#graph.store();
    const holder = await store.holder?.(this.runId).catch(() => undefined);
    throw new CheckpointConflictError(this.runId, 0, 0, { holder });
  }

  /** The events that can be derived from a State. */
  #known(state: State<D> | undefined): AnyEvent[] {
    if (state === undefined) return [];
    const { runId, startedAt, steps } = state;
    const { settings, topology } = this.#graph;
    const start = { entryPoint: topology.entry?.name ?? "", step: 0, resumed: false };
    return [
      eventOf("graph.start", settings.name, runId, start, startedAt),
      ...steps.map((record) => stepEvent(record, runId, settings.name)),
    ];
  }

  /** Polls the run until it has stopped; soon again after a poll that showed something new. */
  async *#looks(signal: AbortSignal): AsyncGenerator<Snapshot<D>, void, undefined> {
    let sequence = -1;
    let idle = 0;
    for (let wait = OFTEN; ; wait = Math.min(wait * 2, RARELY)) {
      signal.throwIfAborted();
      const look = await unlessAborted(this.#snapshot(), signal);
      const { state, isHeld } = look;
      const now = state?.sequence ?? 0;
      look.isNew = now !== sequence;
      sequence = now;
      yield look;
      // Between two polls a run may be saved and released.
      idle = isHeld || look.isNew ? 0 : idle + 1;
      if (look.isNew) wait = OFTEN;
      if (state === undefined ? !isHeld : hasStopped(state) || idle > 1) return;
      await sleep(wait, signal);
    }
  }

  async #snapshot(): Promise<Snapshot<D>> {
    const store = await this.#graph.store();
    let state = await loadIfAny<D>(store, this.runId);
    if (state !== undefined && hasStopped(state)) return { state, isHeld: false };
    const holder = await store.holder?.(this.runId).catch(() => undefined);
    const isHeld = store.holder === undefined ? state !== undefined : holder !== undefined;
    // It may have been saved for the first time meanwhile.
    if (state === undefined) state = await loadIfAny<D>(store, this.runId);
    return { state, isHeld };
  }
}

/** The newest State of a run, if it is in the store. */
export async function loadIfAny<D extends object>(
  store: CheckpointStore,
  runId: string,
  isAgain = false,
): Promise<State<D> | undefined> {
  try {
    return await store.load<D>(runId);
  } catch (error) {
    if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return undefined;
    // It may be being saved at this moment; a checkpoint that is really corrupt is corrupt the second time too.
    if (isAgain || !isWaymarkError(error, "CHECKPOINT_CORRUPT")) throw error;
    return loadIfAny<D>(store, runId, true);
  }
}

/** The error that a checkpoint or a job describes. */
export function errorOf({ name, message }: Pick<RunError, "name" | "message">): Error {
  return Object.assign(new Error(message), { name });
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

/** Whether a run has completed, or waits for its caller. */
function isFinal<D extends object>({ status }: State<D>): boolean {
  return status === "completed" || status === "paused";
}

function hasStopped<D extends object>(state: State<D>): boolean {
  return isFinal(state) || state.status === "failed";
}
