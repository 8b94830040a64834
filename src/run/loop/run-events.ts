import { isoNow, msBetween } from "../../clock.js";
import { CheckpointConflictError, messageOf } from "../../errors.js";
import type { EventMap } from "../../event-map.js";
import type { EventBus, EventType } from "../../events.js";
import type { Edge, GraphNode } from "../../graph/node.js";
import { progressOf } from "../../state/derive.js";
import type { Ledger } from "../../state/ledger.js";
import type { State } from "../../state/state.js";
import type { NoEdge } from "./advance.js";
import type { Failure } from "./failure.js";

/** Emits what happens to one run. What is sent at every step is built only if somebody listens. */
export class RunEvents<D extends object> {
  readonly #bus: EventBus;
  readonly #source: string;
  readonly #runId: string;

  constructor(bus: EventBus, source: string, runId: string) {
    this.#bus = bus;
    this.#source = source;
    this.#runId = runId;
  }

  started(entryPoint: string, step: number, resumed: boolean): void {
    this.#emit("graph.start", { entryPoint, step, resumed });
  }

  resumed({ checkpointNode: node, step }: State<D>, resumeNode: string): void {
    this.#emit("checkpoint.resume", { node, step, resumeNode });
  }

  nodeStarted(node: string, state: State<D>, time: string): void {
    const { step } = state;
    if (this.#bus.listens("cycle.detected")) {
      const visitCount = progressOf(state).counts.visitsOf(node) + 1;
      if (visitCount > 1) this.#emit("cycle.detected", { node, visitCount, step }, time);
    }
    if (this.#bus.listens("node.start")) this.#emit("node.start", { node, step }, time);
  }

  /** Whether anybody listens to completed nodes. */
  get listensToNodes(): boolean {
    return this.#bus.listens("node.complete");
  }

  /** @param before - the ledger as it was when the node began. */
  nodeCompleted(state: State<D>, durationMs: number, before: Ledger, time: string): void {
    const { checkpointNode: node, step, ledger } = state;
    const data = withUsage({ node, step, durationMs }, before, ledger);
    this.#emit("node.complete", data, time);
  }

  nodeFailed(
    { node, message: error }: Failure<D>,
    step: number,
    startedAt: string,
    [before, after]: readonly [Ledger, Ledger],
    cause: unknown,
  ): void {
    const durationMs = msBetween(startedAt, isoNow());
    const data = { node, step, durationMs, error, cause };
    this.#emit("node.complete", withUsage(data, before, after));
  }

  /** The edges that were tried, and the one that was taken. */
  edgeChosen({ edges }: GraphNode<D>, chosen: Edge<D> | NoEdge<D>, time?: string): void {
    const isTaken = chosen.to !== undefined;
    if (this.#bus.listens("edge.evaluate")) {
      const tried = isTaken ? edges.indexOf(chosen) : chosen.tried;
      for (const { events } of edges.slice(0, tried))
        this.#emit("edge.evaluate", events.refused, time);
      if (isTaken) this.#emit("edge.evaluate", chosen.events.taken, time);
    }
    if (isTaken && this.#bus.listens("edge.transition"))
      this.#emit("edge.transition", chosen.events.transition, time);
  }

  /** @param before - the ledger as it was when the node that pauses began. */
  paused(state: State<D>, before: Ledger, after: Ledger): void {
    const node = progressOf(state).unfinished?.node ?? state.checkpointNode;
    const reason = state.pauses.map((pause) => pause.reason).join(", ");
    this.#emit("graph.pause", withUsage({ node, step: state.step, reason }, before, after));
  }

  completed({ checkpointNode: exitPoint, step }: State<D>): void {
    this.#emit("graph.complete", { exitPoint, step });
  }

  failed({ code, node, message: error, cause }: Failure<D>, { step }: State<D>): void {
    this.#emit("graph.fail", { node, step, code, error, cause });
  }

  /** The run ended with an error that is not one of its own, such as a conflict. */
  brokeOff(error: unknown, latest: State<D> | undefined): void {
    const { checkpointNode: node = "", step = 0 } = latest ?? {};
    const code = error instanceof CheckpointConflictError ? error.code : "NODE_FAILED";
    this.#emit("graph.fail", { node, step, code, error: messageOf(error), cause: error });
  }

  #emit<T extends EventType>(type: T, data: EventMap[T], time?: string): void {
    this.#bus.emit(type, this.#source, this.#runId, data, time);
  }
}

/** The data of an event, with the usage in between. */
function withUsage<T extends object>(data: T, before: Ledger, after: Ledger): T {
  const usage = after.usageSince(before);
  return usage === undefined ? data : { ...data, usage };
}

const LIMIT = 100;

/** The names of the last nodes of a run: a ring buffer, because one is added at every step. */
export class Path {
  readonly #names = new Array<string>(LIMIT).fill("");
  #count = 0;

  add(name: string): void {
    this.#names[this.#count % LIMIT] = name;
    this.#count++;
  }

  list(): readonly string[] {
    const oldest = this.#count % LIMIT;
    return this.#count < LIMIT
      ? this.#names.slice(0, this.#count)
      : [...this.#names.slice(oldest), ...this.#names.slice(0, oldest)];
  }
}
