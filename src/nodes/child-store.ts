import type { CheckpointStore } from "../checkpoint/store.js";
import { msBetween } from "../clock.js";
import { CheckpointNotFoundError } from "../errors.js";
import type { GraphTopology } from "../graph/description.js";
import type { RunContext } from "../run/visit/context.js";
import { progressOf } from "../state/derive.js";
import { isReason } from "../state/fields.js";
import type { StateJSON } from "../state/json.js";
import { Ledger } from "../state/ledger.js";
import { State } from "../state/state.js";
import type { AttemptRecord, ItemRecord, StepRecord } from "../state/steps.js";
import { recordProgress } from "./items.js";

const KEY = "subgraph";

/** Stores a run inside a node: the node remembers its newest State, in the outer run's checkpoint. */
export class ChildStore<D extends object> implements CheckpointStore {
  readonly #context: RunContext<D>;
  readonly #opens: (node: string) => boolean;
  #latest: State<object> | undefined;
  /** In the store of the outer run, if it keeps any: a resume must know what the inner graph was. */
  readonly saveTopology?: (topology: GraphTopology) => Promise<void>;
  readonly topology?: (fingerprint: string) => Promise<GraphTopology | undefined>;
  /** Called in each save, so that what it forgets is gone in the same checkpoint. */
  onSave: () => void = () => {};

  /** @param opens - whether an inner node itself contains a graph. */
  constructor(context: RunContext<D>, opens: (node: string) => boolean) {
    this.#context = context;
    this.#opens = opens;
    const { store } = context;
    if (store?.saveTopology) this.saveTopology = store.saveTopology.bind(store);
    if (store?.topology) this.topology = store.topology.bind(store);
    const json = context.recall(KEY);
    this.#latest = json === undefined ? undefined : State.fromJSON(json as StateJSON);
  }

  /** The newest State, if there is one. */
  latest<C extends object>(): State<C> | undefined {
    // Only the caller knows the type of the run's data.
    return this.#latest as unknown as State<C> | undefined;
  }

  async save<C extends object>(state: State<C>): Promise<State<C>> {
    const sequence = state.sequence + 1;
    const saved = state.savedAs({ checkpointId: `${state.runId}.${sequence}`, sequence });
    const json = saved.toJSON();
    const [from, to] = [progressMark(this.#latest), progressMark(state)];
    // All synchronously, so that no checkpoint has one without the others; what may throw comes first.
    this.#context.ledger.merge(this.#latest?.ledger ?? Ledger.empty, state.ledger);
    this.onSave();
    for (const node of this.#ended(state)) this.#context.addInner(node);
    const remembered = from === to ? [] : [recordProgress(this.#context, KEY, from, to)];
    remembered.push(this.#context.remember(KEY, json));
    this.#latest = saved as unknown as State<object>;
    await Promise.all(remembered);
    return saved;
  }

  async load<C extends object>(runId: string): Promise<State<C>> {
    const latest = this.latest<C>();
    if (latest === undefined) throw new CheckpointNotFoundError(runId);
    return latest;
  }

  /** The inner nodes that have ended since the last save. */
  #ended<C extends object>(state: State<C>): ItemRecord[] {
    const done = this.#latest?.step ?? 0;
    const ended: ItemRecord[] = [];
    for (const { node, step, items = [], ...taken } of state.steps) {
      if (step <= done) continue;
      const inside = this.#opens(node) ? items : [];
      ended.push(...inside.map((item) => ({ ...item, name: `${node}/${item.name}` })));
      ended.push({ name: node, ...lastAttemptOf(taken), outcome: "completed" });
    }
    const failed = progressOf(state).begun?.failedAttempts.at(-1);
    // A resumed run still has the error of its failure, which was recorded at the time.
    if (state.error !== undefined && isReason(state.reason, "failure") && failed !== undefined) {
      ended.push({ ...failed, name: state.error.node, outcome: "failed" });
    }
    return ended;
  }

  /** Nothing to do: the node forgets the run when it completes. */
  async delete(): Promise<void> {}

  async list(): Promise<string[]> {
    return this.#latest === undefined ? [] : [this.#latest.runId];
  }
}

/** The attempt in which a step completed; failed attempts have their own records. */
function lastAttemptOf(step: Omit<StepRecord, "node" | "step" | "items">): AttemptRecord {
  const { startedAt, completedAt, durationMs, lastAttemptAt } = step;
  if (lastAttemptAt === undefined) return { startedAt, durationMs };
  return { startedAt: lastAttemptAt, durationMs: msBetween(lastAttemptAt, completedAt) };
}

/** The inner nodes that lead to where a run stopped inside a node, outermost first; none if the node runs no graph. */
export function innerPathOf<D extends object>(state: State<D>): string[] {
  return pathIn(progressOf(state).unfinished?.results.byKey().get(KEY));
}

/** Reads the JSON, not a State: a redacted one can't be parsed as a State, and the data may be large. */
function pathIn(json: unknown): string[] {
  if (typeof json !== "object" || json === null) return [];
  const { error, unfinished, nextNode } = json as Partial<StateJSON>;
  const node = error?.node ?? unfinished?.node ?? nextNode;
  if (node === undefined) return [];
  return [node, ...pathIn(Reflect.get(Object(unfinished?.results), KEY))];
}

/** Identifies the progress of a run: it changes when the run advances, not when it fails. */
function progressMark<D extends object>(state: State<D> | undefined): string {
  return state === undefined ? "" : `${state.step}.${progressOf(state).unfinished?.count ?? 0}`;
}
