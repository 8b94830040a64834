import type { CheckpointStore, Claim } from "../checkpoint/store.js";
import { ConfigError, type SchemaError, show } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventBus } from "../events.js";
import type { NodeContext, ProgressPart } from "../graph/node.js";
import type { PauseRequest } from "../state/record.js";
import type { Patch, State } from "../state/state.js";
import type { ItemOutcome, ItemRecord } from "../state/steps.js";

/** The context of the node factories, which can do more than that of other nodes. */
export interface FactoryContext<D extends object> extends NodeContext<D> {
  /** The event bus of the run. */
  readonly bus: EventBus;
  /** The tasks of a dag that this run has completed. */
  readonly tasks: readonly string[];
  /** The claim on the run, for runs inside the node. */
  readonly claim: Claim | undefined;
  /** The store of the run; `undefined` if it saves nothing. */
  readonly store: CheckpointStore | undefined;
  /** Whether the graph has reducers. */
  readonly reduces: boolean;
  /**
   * Awaited before a part of the node begins.
   *
   * @throws CheckpointConflictError if another process may have the run.
   */
  checkClaim(): Promise<void>;
  /** As in every context; the event also names the item. */
  progress(part: ProgressPart, item?: string): void;
  /** Notes tasks that the node has completed; they count once the node completes. */
  completeTasks(tasks: Iterable<string>): void;
  /** Emits that an item has ended, and adds it to the step's record. */
  completeItem(
    type: "step.complete" | "worker.complete",
    data: EventMap["step.complete"],
    outcome: ItemOutcome,
  ): void;
  /** Adds a node of an inner graph to the step's record; inside an item it does nothing, as the item is the entry. */
  addInner(node: ItemRecord): void;
  /** Remembers a value without saving: the next save includes it. */
  keep(key: string, value: unknown): void;
  /** Saves a copy of the run's data; a migration or a fork changes it as it changes the data. */
  rememberData(key: string, data: object): Promise<void>;
  /** The copy of the run's data under a key. */
  recallData(key: string): unknown;
  /** Forgets the copy of the run's data under a key. */
  forgetData(key: string): void;
  /** As in every context; only calls of the same attempt share an execution. */
  once<T>(key: string, action: () => T | Promise<T>, attempt?: string): Promise<T>;
  /** The answer to a pause of a run inside this node; without one this run pauses. */
  answer(request: PauseRequest): Promise<unknown>;
  /** Notes that an answer was invalid and is asked for again, so that whoever gave it is told. */
  refuse(error: SchemaError): void;
  /** A State with a change merged in, through the graph's reducers. */
  change(state: State<D>, change: State<D> | Patch<D>): State<D>;
}

/** A node's context with the members for factories. */
export function factoryContext<D extends object>(context: NodeContext<D>): FactoryContext<D> {
  if ("completeTasks" in context) return context as FactoryContext<D>;
  throw new ConfigError("context", `must be the context the node was given; got ${show(context)}`);
}

const METHODS = [
  "once",
  "recall",
  "remember",
  "forget",
  "checkpoint",
  "pause",
  "sleep",
  "progress",
  "emit",
] as const satisfies readonly (keyof NodeContext<object>)[];

/** Binds the methods of a node's context when they are read, so that `const { once } = context` works. */
export function bindMethods(prototype: object): void {
  for (const name of METHODS) {
    const method: unknown = Object.getOwnPropertyDescriptor(prototype, name)?.value;
    if (typeof method !== "function") continue;
    Object.defineProperty(prototype, name, {
      configurable: true,
      get(this: unknown) {
        return method.bind(this);
      },
    });
  }
}
