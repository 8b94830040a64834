import { waitsForResume } from "../../checkpoint/fork.js";
import { GraphError, show } from "../../errors.js";
import { END, type GraphNode } from "../../graph/node.js";
import type { Topology } from "../../graph/topology.js";
import { check, checkOptions } from "../../options.js";
import { progressOf, withProgress } from "../../state/derive.js";
import { noPauses, type PauseRequest } from "../../state/pauses.js";
import type { State } from "../../state/state.js";
import { ASKED, askersOf } from "../pauses/pauses.js";

/** Replaces a node that a graph no longer has: the node to continue at, or the new name of the node. */
export type MissingNode =
  | string
  | {
      /** The new name of a node that was renamed. */
      readonly as: string;
    };

/** The replacement of each removed node, by its old name. */
export type MissingNodes = Readonly<Record<string, MissingNode>>;

/** What a position depends on besides the State and the graph's nodes. */
interface PositionSettings {
  readonly name: string;
  readonly onMissingNode: MissingNodes;
  readonly isInner: boolean;
}

/** Throws if the value is not a table of replacements for nodes. */
export function checkMissingNodes(name: string, value: unknown): void {
  const keys = Object.keys(Object(value));
  checkOptions(name, value, Object.fromEntries(keys.map((key) => [key, isStandIn])));
}

const isStandIn = check(
  "a node's name or { as: name }",
  (value) => typeof replacementName(value) === "string" && replacementName(value) !== "",
);

function replacementName(value: unknown): unknown {
  return typeof value === "object" && value !== null && "as" in value ? value.as : value;
}

/** The position of a run in the graph as it is now. */
export interface RunPosition<D extends object> {
  /** The run's State, with the current name of its unfinished node. */
  readonly state: State<D>;
  /** The node it continues after; `undefined` before the first. */
  readonly after: GraphNode<D> | undefined;
  /** The node it continues with, if that is known without evaluating edges. */
  readonly next: GraphNode<D> | undefined;
}

/**
 * Finds the position of a State in a graph that may have changed since it was saved.
 *
 * @throws GraphError if it is at a node that the graph no longer has.
 */
export function positionOf<D extends object>(
  state: State<D>,
  topology: Topology<D>,
  settings: PositionSettings,
): RunPosition<D> {
  if (topology.locate !== undefined) return located(state, topology, topology.locate);
  const { unfinished, checkpointNode } = progressOf(state);
  const after = topology.find(checkpointNode);
  const isKnown = after !== undefined || checkpointNode === "";
  const inside = unfinished?.node;
  const next = inside === undefined ? undefined : topology.find(inside);
  if (next !== undefined || (inside === undefined && isKnown)) return { state, after, next };
  const name = inside ?? checkpointNode;
  const found = replacement(name, settings.onMissingNode, topology);
  if (found === undefined) {
    // Whoever forks or rolls back to a completed step continues after it, not inside what came next.
    if (isKnown && waitsForResume(state)) return { state: left(state), after, next: undefined };
    throw unknownNode(state, name, inside !== undefined, topology, settings);
  }
  const { node, isSame } = found;
  if (inside !== undefined)
    return { state: isSame ? renamed(state, node.name) : left(state), after, next: node };
  return isSame ? { state, after: node, next: undefined } : { state, after: undefined, next: node };
}

/** The position that the graph itself determines, whatever node the run was saved after. */
function located<D extends object>(
  state: State<D>,
  topology: Topology<D>,
  locate: (state: State<D>) => string | undefined,
): RunPosition<D> {
  const name = locate(state);
  const after = topology.find(state.checkpointNode);
  if (name !== undefined) {
    const asked = withPauses(state, pausesLeft(state, topology));
    return { state: renamed(asked, name), after, next: topology.node(name, "locate") };
  }
  const end = after?.exit ? after : topology.nodes.find(({ exit }) => exit);
  return { state: left(state), after: end, next: undefined };
}

/** The pauses of a State without those that removed tasks have asked for. */
function pausesLeft<D extends object>(
  state: State<D>,
  { tasks }: Topology<D>,
): readonly PauseRequest[] {
  const { pauses, unfinished } = progressOf(state);
  const asked = unfinished && askersOf(unfinished.results.byKey().get(ASKED));
  const isThere = (task: string | undefined) => task === undefined || tasks?.has(task);
  return pauses.filter(({ name }) => isThere(asked?.get(name)));
}

/** The State with some of its pauses; without any it is not paused. */
function withPauses<D extends object>(state: State<D>, pauses: readonly PauseRequest[]): State<D> {
  if (pauses.length === state.pauses.length) return state;
  const status = pauses.length === 0 ? "in_progress" : state.status;
  return withProgress(state, { pauses: Object.freeze(pauses), status });
}

/** The State with its unfinished node under another name. */
function renamed<D extends object>(state: State<D>, node: string): State<D> {
  const { unfinished } = progressOf(state);
  if (unfinished === undefined || unfinished.node === node) return state;
  return withProgress(state, { unfinished: Object.freeze({ ...unfinished, node }) });
}

/** The State without the progress and the pauses of its unfinished node. */
function left<D extends object>(state: State<D>): State<D> {
  return withProgress(withPauses(state, noPauses), { unfinished: undefined });
}

/**
 * What replaces a node; `undefined` if nothing does.
 *
 * @throws GraphError if the graph does not have the replacement either.
 */
export function replacement<D extends object>(
  name: string,
  missing: MissingNodes,
  topology: Topology<D>,
): { readonly node: GraphNode<D>; readonly isSame: boolean } | undefined {
  const found = Object.hasOwn(missing, name) ? missing[name] : undefined;
  if (found === undefined) return undefined;
  const isSame = typeof found === "object";
  const node = topology.node(isSame ? found.as : found, `config.onMissingNode[${show(name)}]`);
  return { node, isSame };
}

function unknownNode<D extends object>(
  state: State<D>,
  name: string,
  isInside: boolean,
  topology: Topology<D>,
  { name: graph, isInner }: PositionSettings,
): GraphError {
  const { runId, step } = state;
  const names = topology.nodes.map((node) => show(node.name)).join(", ") || "none";
  const where = isInside ? "in the middle of" : "after";
  const at = isInside ? step : Math.max(0, step - 1);
  const to = likelyNext(state, topology)?.name ?? "";
  const fork = isInner
    ? "Fork the run that contains it at an earlier step"
    : `Fork the run at an earlier step (waymark fork ${runId} --at ${at})`;
  const option = `config.onMissingNode${isInner ? ` of graph ${show(graph)}` : ""}`;
  return new GraphError(
    "GRAPH_NODE_UNKNOWN",
    `run ${show(runId)} is ${where} node ${show(name)} (step ${step}), which this graph no longer has; ` +
      `the nodes are: ${names}. ${fork}, or set ${option}, such as { ${show(name)}: ${show(to)} }`,
  );
}

/** A node that a run could well continue at: one that it was to run next, or has not run. */
function likelyNext<D extends object>(
  { nextNode = "", checkpointNode, visits }: State<D>,
  topology: Topology<D>,
): GraphNode<D> | undefined {
  const after = topology.find(checkpointNode);
  const successors = after === undefined ? [] : after.edges.map(({ to }) => to);
  return (
    topology.find(nextNode) ??
    successors.find((to) => to !== END) ??
    topology.nodes.find((node) => !Object.hasOwn(visits, node.name)) ??
    topology.nodes.at(-1)
  );
}
