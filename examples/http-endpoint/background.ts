import type { State, StateGraph, WaymarkEvent } from "waymark";

/** A run that this process works on. */
interface Running {
  readonly controller: AbortController;
  /** Settles when the run has stopped, whatever way. */
  readonly stopped: Promise<unknown>;
}

/** Keeps runs of a graph going while requests are answered. */
export class Background<D extends object, N extends string> {
  readonly #graph: StateGraph<D, N>;
  readonly #running = new Map<string, Running>();

  constructor(graph: StateGraph<D, N>) {
    this.#graph = graph;
  }

  /** Whether this process works on a run. */
  has(runId: string): boolean {
    return this.#running.has(runId);
  }

  /**
   * Starts or resumes a run. Resolves once it has been saved: from then on a crash loses nothing.
   * Rejects with what stops it before that, such as an input that is refused.
   */
  async begin(runId: string, go: (signal: AbortSignal) => Promise<State<D>>): Promise<void> {
    const controller = new AbortController();
    let onSave = (_event: WaymarkEvent<"checkpoint.save">): void => {};
    const saved = new Promise<void>((resolve) => {
      onSave = (event) => event.runId === runId && resolve();
      this.#graph.on("checkpoint.save", onSave);
    });
    const ended = go(controller.signal).finally(() => {
      this.#graph.off("checkpoint.save", onSave);
      this.#running.delete(runId);
    });
    // How it ended is in its checkpoint.
    this.#running.set(runId, { controller, stopped: ended.catch(() => {}) });
    await Promise.race([saved, ended]);
  }

  /** Stops a run behind the node that is running; `false` when this process does not work on it. */
  async stop(runId: string): Promise<boolean> {
    const running = this.#running.get(runId);
    running?.controller.abort();
    await running?.stopped;
    return running !== undefined;
  }
}
