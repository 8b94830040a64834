import { ConfigError } from "../errors.js";
import type { NodeFunction, NodeResult } from "../graph/node.js";
import { factoryContext, type RunContext } from "../run/visit/context.js";
import type { State } from "../state/state.js";

interface Use {
  readonly node: unknown;
  /** Whether it failed and may be tried again. */
  hasFailed: boolean;
}

const factoryNodes = new WeakSet<object>();
const uses = new WeakMap<object, Map<string, Use>>();

/** A node made by a factory; its context can do more than that of other nodes. */
export type FactoryNode<D extends object> = (
  state: State<D>,
  context: RunContext<D>,
) => Promise<NodeResult<D>>;

/**
 * A node that refuses to run in a context where another of its kind has run: both would use the same keys, and the
 * second would take the first one's results for its own.
 */
export function oncePerNode<D extends object>(kind: string, node: FactoryNode<D>): NodeFunction<D> {
  const made: NodeFunction<D> = async (state, context) => {
    const known = uses.get(context) ?? new Map<string, Use>();
    const before = known.get(kind);
    if (before !== undefined && !(before.node === node && before.hasFailed)) {
      throw new ConfigError(kind, "is called twice in one node: add a node for each");
    }
    const use = { node, hasFailed: false };
    uses.set(context, known.set(kind, use));
    try {
      return await node(state, factoryContext(context));
    } catch (error) {
      use.hasFailed = true;
      throw error;
    }
  };
  factoryNodes.add(made);
  return made;
}

/** Whether a function is a node that a factory made. */
export function isFactoryNode(value: object): boolean {
  return factoryNodes.has(value);
}
