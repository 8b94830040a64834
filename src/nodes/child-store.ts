import { type CheckpointStore, notFound } from "../checkpoint/store.js";
import type { NodeContext } from "../graph/node.js";
import { progressOf } from "../state/derive.js";
import type { StateJSON } from "../state/json.js";
import { Ledger } from "../state/ledger.js";
import { State } from "../state/state.js";
import { recordProgress } from "./scope.js";

const KEY = "subgraph";

/** Keeps a run inside a node: its newest State is what the node remembers, in the outer run's checkpoint. */
export class ChildStore<D extends object> implements CheckpointStore {
  readonly #context: NodeContext<D>;
  #latest: State<object> | undefined;
  /** Called with each save, so that what it forgets goes with it. */
  onSave: () => void = () => {};

  constructor(context: NodeContext<D>) {
    this.#context = context;
    const json = context.recall(KEY);
    this.#latest = json === undefined ? undefined : State.fromJSON(json as StateJSON);
  }

  /** The newest State, if there is one. */
  latest<C extends object>(): State<C> | undefined {
    // What a run keeps is what its caller says it is: nobody else can know.
    return this.#latest as unknown as State<C> | undefined;
  }

  async save<C extends object>(state: State<C>): Promise<State<C>> {
    const sequence = state.sequence + 1;
    const saved = state.savedAs({ checkpointId: `${state.runId}.${sequence}`, sequence });
    const json = saved.toJSON();
    const [from, to] = [progressMark(this.#latest), progressMark(state)];
    // All in one go, so that no checkpoint has the one without the other; what may throw comes first.
    this.#context.ledger.merge(this.#latest?.ledger ?? Ledger.empty, state.ledger);
    this.onSave();
    const remembered = from === to ? [] : [recordProgress(this.#context, KEY, from, to)];
    remembered.push(this.#context.remember(KEY, json));
    this.#latest = saved as unknown as State<object>;
    await Promise.all(remembered);
    return saved;
  }

  async load<C extends object>(runId: string): Promise<State<C>> {
    const latest = this.latest<C>();
    if (latest === undefined) throw notFound(runId);
    return latest;
  }

  /** The node forgets it when it has completed. */
  async delete(): Promise<void> {}

  async list(): Promise<string[]> {
    return this.#latest === undefined ? [] : [this.#latest.runId];
  }
}

/** How far a run is: what changes when it gets further, and not when it fails. */
function progressMark<D extends object>(state: State<D> | undefined): string {
  return state === undefined ? "" : `${state.step}.${progressOf(state).unfinished?.count ?? 0}`;
}
