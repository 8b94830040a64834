import type { NodeContext } from "../graph/node.js";

/**
 * Remembers that a node has come to another place. What it is at only replaces what it was at, and of
 * that nobody can tell whether it got further: a place is a result of its own.
 */
export function arrive<D extends object>(
  context: NodeContext<D>,
  name: string,
  from: string,
  to: string,
): Promise<void> {
  // First, because an attempt that was given up is told so here, before a promise waits for nobody.
  context.forget(`${name} ${from}`);
  return context.remember(`${name} ${to}`, true);
}
