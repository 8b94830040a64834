import type { Checkpoint } from "../../checkpoint/store.js";
import { ConfigError, show } from "../../errors.js";
import { callable, check, duration, number, text } from "../../options.js";
import type { Visits } from "../../state/counts.js";
import type { Ledger } from "../../state/ledger.js";
import type { Reason } from "../../state/reasons.js";
import type { State } from "../../state/state.js";
import { decided } from "../loop/failure.js";

/** A State as triggers see it, whatever its data. */
export interface TriggerState extends Checkpoint {
  /** The data. */
  readonly data: object;
  /** The ledger. */
  readonly ledger: Ledger;
  /** How often each node completed, this time included. */
  readonly visits: Visits;
}

/** The second argument of a trigger. */
export interface TriggerInput {
  /** The State before the node. */
  readonly before: TriggerState;
  /** Milliseconds since this process last saved the run. */
  readonly sinceSave: number;
}

/** Decides whether a State deserves a checkpoint in addition to those of the interval. */
export interface Trigger {
  /** Recorded in the checkpoint. */
  readonly reason: string;
  /** Whether to save this State, which a node has just returned. */
  due(state: TriggerState, input: TriggerInput): boolean;
  /** The nodes it names; a graph that lacks one of them is rejected. */
  readonly nodes?: readonly string[];
}

/**
 * Saves when a predicate returns `true`.
 *
 * @example
 * ```ts
 * import { MemoryStore, State, StateGraph, when } from "waymark";
 *
 * const store = new MemoryStore();
 * const graph = new StateGraph<{ spent: number }>({
 *   checkpoint: { store, preserve: true, triggers: [when((state) => state.step === 1, "phase")] },
 * })
 *   .addNode("a", () => ({ spent: 1 }))
 *   .addNode("b", () => ({ spent: 2 }))
 *   .addEdge("a", "b")
 *   .setEntryPoint("a")
 *   .setExitPoint("b");
 * const { runId } = await graph.execute(State.create({ spent: 0 }));
 * console.log((await graph.history(runId)).map((entry) => entry.reason).join()); // complete,phase,start
 * ```
 */
export function when(
  predicate: (state: TriggerState, input: TriggerInput) => boolean,
  reason: string,
): Trigger {
  callable("predicate", predicate);
  text("reason", reason);
  return { reason, due: predicate };
}

/**
 * Saves after these nodes, such as the end of a phase or an evaluation.
 *
 * @throws ConfigError if a name is empty.
 *
 * @example
 * ```ts
 * import { afterNodes, MemoryStore, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ n: number }>({
 *   checkpoint: { store: new MemoryStore(), preserve: true, triggers: [afterNodes("a")] },
 * })
 *   .addNode("a", () => ({ n: 1 }))
 *   .addNode("b", () => ({ n: 2 }))
 *   .addEdge("a", "b")
 *   .setEntryPoint("a")
 *   .setExitPoint("b");
 * const { runId } = await graph.execute(State.create({ n: 0 }));
 * console.log((await graph.history(runId)).map((entry) => entry.reason).join()); // complete,node,start
 * ```
 */
export function afterNodes(...nodes: readonly string[]): Trigger {
  for (const node of nodes) text("node", node);
  return {
    reason: "node" satisfies Reason,
    nodes,
    due: (state) => nodes.includes(state.checkpointNode),
  };
}

/**
 * Saves when a node fails. A graph with an interval does so anyway; with an interval of 0 this saves on failure and not
 * after each node.
 *
 * @example
 * ```ts
 * import { MemoryStore, onError, State, StateGraph } from "waymark";
 *
 * const store = new MemoryStore();
 * const graph = new StateGraph<{ n: number }>({ checkpoint: { store, triggers: [onError()] } })
 *   .addNode("a", () => ({ n: 1 }))
 *   .addNode("b", () => {
 *     throw new Error("broken");
 *   })
 *   .addEdge("a", "b")
 *   .setEntryPoint("a")
 *   .setExitPoint("b");
 * await graph.execute(State.create({ n: 0 }, { runId: "monday" })).catch(() => {});
 * console.log((await store.history("monday")).map((entry) => entry.reason).join()); // failure,start
 * ```
 */
export function onError(): Trigger {
  return { reason: "failure" satisfies Reason, due: () => false };
}

/**
 * Saves while the ledger's confidence is below a threshold.
 *
 * @throws ConfigError if the threshold is not between 0 and 1.
 *
 * @example
 * ```ts
 * import { MemoryStore, State, StateGraph, whenConfidenceBelow } from "waymark";
 *
 * const graph = new StateGraph<{ n: number }>({
 *   checkpoint: { store: new MemoryStore(), preserve: true, triggers: [whenConfidenceBelow(0.5)] },
 * })
 *   .addNode("a", (state, { ledger }) => {
 *     ledger.decision({ description: "guess", confidence: 0.3 });
 *     return state;
 *   })
 *   .addNode("b", (state) => state)
 *   .addEdge("a", "b")
 *   .setEntryPoint("a")
 *   .setExitPoint("b");
 * const { runId } = await graph.execute(State.create({ n: 0 }));
 * console.log((await graph.history(runId)).map((entry) => entry.reason).join()); // complete,confidence,start
 * ```
 */
export function whenConfidenceBelow(threshold: number): Trigger {
  isShare("threshold", threshold);
  return {
    reason: "confidence" satisfies Reason,
    due: ({ ledger }) => (ledger.confidence ?? 1) < threshold,
  };
}

/**
 * Saves when the ledger's confidence crosses a threshold.
 *
 * @throws ConfigError if the threshold is not between 0 and 1.
 *
 * @example
 * ```ts
 * import { MemoryStore, State, StateGraph, whenConfidenceCrosses } from "waymark";
 *
 * const graph = new StateGraph<{ sure: number }>({
 *   checkpoint: { store: new MemoryStore(), preserve: true, triggers: [whenConfidenceCrosses(0.5)] },
 * })
 *   .addNode("judge", (state, { ledger }) => {
 *     const sure = state.data.sure + 0.2;
 *     ledger.decision({ description: "judge", confidence: sure });
 *     return { sure };
 *   })
 *   .addNode("end", (state) => state)
 *   .addEdge("judge", "judge", (state) => state.data.sure < 0.8)
 *   .addEdge("judge", "end")
 *   .setEntryPoint("judge")
 *   .setExitPoint("end");
 * const { runId } = await graph.execute(State.create({ sure: 0.1 }));
 * const entries = await graph.history(runId);
 * console.log(entries.map(({ reason, step }) => `${reason} ${step}`).join()); // complete 5,confidence 2,start 0
 * ```
 */
export function whenConfidenceCrosses(threshold: number): Trigger {
  isShare("threshold", threshold);
  const below = ({ ledger }: TriggerState): boolean | undefined =>
    ledger.confidence === undefined ? undefined : ledger.confidence < threshold;
  return {
    reason: "confidence" satisfies Reason,
    due: (state, { before }) => {
      const [was, is] = [below(before), below(state)];
      return was !== undefined && is !== undefined && was !== is;
    },
  };
}

/**
 * Saves after a node if the last save was at least this many milliseconds ago.
 *
 * @throws ConfigError if it is not a number ≥ 0.
 *
 * @example
 * ```ts
 * import { everyMs, MemoryStore, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ n: number }>({
 *   checkpoint: { store: new MemoryStore(), preserve: true, triggers: [everyMs(0)] },
 * })
 *   .addNode("a", () => ({ n: 1 }))
 *   .addNode("b", () => ({ n: 2 }))
 *   .addEdge("a", "b")
 *   .setEntryPoint("a")
 *   .setExitPoint("b");
 * const { runId } = await graph.execute(State.create({ n: 0 }));
 * console.log((await graph.history(runId)).map((entry) => entry.reason).join()); // complete,time,start
 * ```
 */
export function everyMs(ms: number): Trigger {
  duration("ms", ms);
  return { reason: "time" satisfies Reason, due: (_state, { sinceSave }) => sinceSave >= ms };
}

/**
 * Saves after a node while the process uses more heap than this many megabytes. Does nothing where the heap can't be
 * measured.
 *
 * @throws ConfigError if it is not a number > 0.
 *
 * @example
 * ```ts
 * import { MemoryStore, onMemoryPressure, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ n: number }>({
 *   checkpoint: { store: new MemoryStore(), preserve: true, triggers: [onMemoryPressure(1)] },
 * })
 *   .addNode("a", () => ({ n: 1 }))
 *   .addNode("b", () => ({ n: 2 }))
 *   .addEdge("a", "b")
 *   .setEntryPoint("a")
 *   .setExitPoint("b");
 * const { runId } = await graph.execute(State.create({ n: 0 }));
 * console.log((await graph.history(runId)).map((entry) => entry.reason).join()); // complete,memory,start
 * ```
 */
export function onMemoryPressure(megabytes: number): Trigger {
  check("a number > 0", (value) => typeof value === "number" && value > 0)("megabytes", megabytes);
  return { reason: "memory" satisfies Reason, due: () => heapUsed() > megabytes * 1024 * 1024 };
}

const isShare = number(0, 1);

function heapUsed(): number {
  // Not Node's `process` itself: the core runs in a browser too.
  const host = globalThis as { process?: { memoryUsage?(): { heapUsed: number } } };
  return host.process?.memoryUsage?.().heapUsed ?? 0;
}

/** Whether a trigger is due. A trigger that throws fails the run like an edge's predicate. */
export function isDue<D extends object>(
  trigger: Trigger,
  state: State<D>,
  input: TriggerInput,
): boolean {
  const nameOf = ({ reason }: Trigger): string => `trigger ${show(reason)}`;
  return decided(trigger, () => trigger.due(state, input), nameOf, state, state.checkpointNode);
}

/** Throws if the value is not a list of triggers. */
export function checkTriggers(name: string, value: unknown): void {
  if (!Array.isArray(value))
    throw new ConfigError(name, `must be an array of triggers; got ${show(value)}`);
  value.forEach((one: unknown, index) => {
    const { reason, due } = (one ?? {}) as Partial<Trigger>;
    if (typeof reason === "string" && typeof due === "function") return;
    throw new ConfigError(
      `${name}[${index}]`,
      `must be a trigger such as afterNodes("draft"); got ${show(one)}`,
    );
  });
}
