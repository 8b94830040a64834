import { type AnyEvent, isRunEnd } from "../../events.js";

/** Where in its run an event happened. */
export interface EventPlace {
  /** The step it belongs to, such as `search-001`; `""` before the first. */
  readonly step_id: string;
  /** The step that led to that one; `""` for the first. */
  readonly parent_id: string;
  /** The node of that step. */
  readonly node: string;
}

interface Trail {
  /** The step that is running, or ran last. */
  current: EventPlace;
  /** The last step that completed. */
  completed: string;
}

const nowhere: EventPlace = { step_id: "", parent_id: "", node: "" };

/** Runs that never end must not accumulate. */
const MAX_RUNS = 10_000;

/**
 * Finds the step that each event belongs to, and the step before it. An id consists of the node and its place in
 * the run, so it is the same in every process and after every resume.
 */
export class Trace {
  readonly #trails = new Map<string, Trail>();

  /** The place of an event. The events of a run must arrive in order. */
  place(event: AnyEvent): EventPlace {
    const trail = this.#trail(event.runId);
    move(trail, event);
    if (isRunEnd(event)) this.#trails.delete(event.runId);
    return trail.current;
  }

  #trail(runId: string): Trail {
    const known = this.#trails.get(runId);
    if (known !== undefined) return known;
    const oldest = this.#trails.size >= MAX_RUNS ? this.#trails.keys().next().value : undefined;
    if (oldest !== undefined) this.#trails.delete(oldest);
    const trail = { current: nowhere, completed: "" };
    this.#trails.set(runId, trail);
    return trail;
  }
}

/** A step's id: its node, and how many steps completed before it. */
function stepId(node: string, step: number): string {
  return `${node}-${String(step).padStart(3, "0")}`;
}

function move(trail: Trail, event: AnyEvent): void {
  switch (event.type) {
    case "graph.start":
      if (!event.data.resumed) Object.assign(trail, { current: nowhere, completed: "" });
      return;
    case "checkpoint.load":
    case "checkpoint.resume": {
      const { node, step } = event.data;
      trail.completed = node === "" ? "" : stepId(node, step - 1);
      // Which step led to that one is in the log of the process that ran it.
      if (trail.current.step_id !== trail.completed)
        trail.current = { step_id: trail.completed, parent_id: "", node };
      return;
    }
    case "node.start": {
      const { node, step } = event.data;
      trail.current = { step_id: stepId(node, step), parent_id: trail.completed, node };
      return;
    }
    case "node.complete":
      if (event.data.error === undefined) trail.completed = trail.current.step_id;
      return;
    default:
  }
}
