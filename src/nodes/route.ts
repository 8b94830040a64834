import { messageOf, RouteError, show } from "../errors.js";
import type {
  AnyResult,
  CheckedResult,
  NodeContext,
  NodeFunction,
  NodeResult,
} from "../graph/node.js";
import { callable, check } from "../options.js";
import { isStop } from "../run/loop/failure.js";
import { PauseRequested } from "../run/pauses/pauses.js";
import { isFields } from "../state/shape.js";
import type { State } from "../state/state.js";
import { oncePerNode } from "./once-per-node.js";

const handlersByName = check("an object of nodes", isFields);

/**
 * A node that runs one of several handlers, named by `choose`. Once the handler has saved anything, retries and
 * resumes keep the choice.
 *
 * @param fallback - the node for a name that is not among the handlers.
 * @throws RouteError from the node: its code says whether choosing failed, the name is unknown and there is no
 * fallback, or the handler failed.
 *
 * @example
 * ```ts
 * import { route, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ kind: string; answer: string }>()
 *   .addNode(
 *     "reply",
 *     route(
 *       (state) => state.data.kind,
 *       { bill: () => ({ answer: "paid" }), bug: () => ({ answer: "fixed" }) },
 *       () => ({ answer: "passed on" }),
 *     ),
 *   )
 *   .setEntryPoint("reply")
 *   .setExitPoint("reply");
 *
 * const final = await graph.execute(State.create({ kind: "bug", answer: "" }));
 * console.log(final.data.answer); // fixed
 * ```
 */
export function route<
  D extends object,
  R extends Readonly<Record<string, AnyResult<D>>> = Record<
    string,
    NodeResult<D> | Promise<NodeResult<D>>
  >,
  F extends AnyResult<D> = NodeResult<D> | Promise<NodeResult<D>>,
>(
  choose: (state: State<D>, context: NodeContext<D>) => string | Promise<string>,
  handlers: { readonly [K in keyof R]: NodeFunction<D, CheckedResult<D, R[K]>> },
  fallback?: NodeFunction<D, CheckedResult<D, F>>,
): NodeFunction<D>;
export function route<D extends object>(
  choose: (state: State<D>, context: NodeContext<D>) => string | Promise<string>,
  handlers: Readonly<Record<string, NodeFunction<D>>>,
  fallback?: NodeFunction<D>,
): NodeFunction<D> {
  callable("choose", choose);
  handlersByName("handlers", handlers);
  const known = new Map(Object.entries(handlers));
  for (const [name, handler] of known) callable(`handlers.${name}`, handler);
  if (fallback !== undefined) callable("fallback", fallback);

  return oncePerNode<D>("route", async (state, context) => {
    const { node, step, signal } = context;
    const recalled = context.recall("route") as string | undefined;
    const name = recalled ?? (await chosen(choose, state, context));
    const handler = known.get(name) ?? fallback;
    if (handler === undefined) {
      const names = [...known.keys()].map(show).join(", ") || "none";
      const message = `there is no route ${show(name)} and no fallback; the routes are: ${names}`;
      throw new RouteError("ROUTE_UNKNOWN", message, { route: name });
    }
    const data = { node, step, route: name, fallback: !known.has(name) };
    context.emit("route.select", data);
    signal.throwIfAborted();
    // What the handler saves belongs to this route, so the choice is saved with it; a failed save ends the run
    // anyway.
    const keep = (): void => {
      if (context.recall("route") === undefined) context.remember("route", name).catch(() => {});
    };
    try {
      const result = await handler(state, context.route(name, keep));
      context.emit("route.execute", data);
      return result;
    } catch (cause) {
      if (cause instanceof PauseRequested) throw cause;
      const message = messageOf(cause);
      context.emit("route.execute", { ...data, error: message });
      if (isStop(cause, context)) throw cause;
      throw new RouteError("ROUTE_FAILED", `route ${show(name)} failed: ${message}`, {
        route: name,
        cause,
      });
    }
  });
}

async function chosen<D extends object>(
  choose: (state: State<D>, context: NodeContext<D>) => string | Promise<string>,
  state: State<D>,
  context: NodeContext<D>,
): Promise<string> {
  context.emit("route.evaluate", { node: context.node, step: context.step });
  let name: unknown;
  try {
    name = await choose(state, context);
  } catch (cause) {
    if (cause instanceof PauseRequested || isStop(cause, context)) throw cause;
    const message = `choosing a route failed: ${messageOf(cause)}`;
    throw new RouteError("ROUTE_CHOICE", message, { cause });
  }
  if (typeof name === "string") return name;
  throw new RouteError("ROUTE_CHOICE", `choose must return a string; got ${show(name)}`);
}
