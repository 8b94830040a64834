import { type ErrorState, WaymarkError } from "./base.js";
import type { CodeOf } from "./table.js";
import { messageOf, show } from "./text.js";

/** How many items an error's message names. */
const NAMED = 5;

/** An item that failed. */
export interface ItemError {
  /** Its index in the list. */
  readonly index: number;
  /** The item. */
  readonly item: unknown;
  /** What the worker threw. */
  readonly cause: unknown;
}

/**
 * A step of a chain failed. `cause` is what it threw.
 *
 * @example
 * ```ts
 * import { chain, ChainError, type ExecutionError, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ sum: number }>()
 *   .addNode(
 *     "add",
 *     chain([1, 2, -1], (state, n) => {
 *       if (n < 0) throw new Error("below zero");
 *       return { sum: state.data.sum + n };
 *     }),
 *   )
 *   .setEntryPoint("add")
 *   .setExitPoint("add");
 * await graph.execute(State.create({ sum: 0 })).catch(({ cause }: ExecutionError) => {
 *   if (cause instanceof ChainError) console.log(cause.index, cause.item, JSON.stringify(cause.state.data)); // 2 -1 {"sum":3}
 * });
 * ```
 */
export class ChainError extends WaymarkError {
  /** The index of its item in the list. */
  readonly index: number;
  /** The item. */
  readonly item: unknown;
  /** The State after the steps before it. */
  readonly state: ErrorState;

  /** @param failure - the item and what its step threw; `state` is what the step was given. */
  constructor(failure: ItemError, state: ErrorState) {
    const { index, item, cause } = failure;
    super("CHAIN_FAILED", `step ${index} (${show(item)}) failed: ${messageOf(cause)}`, { cause });
    this.index = index;
    this.item = item;
    this.state = state;
  }
}

/**
 * Items of a parallel node failed. `cause` is what the first of them threw.
 *
 * @example
 * ```ts
 * import { type ExecutionError, parallel, ParallelError, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ pages: string[] }>()
 *   .addNode(
 *     "fetch",
 *     parallel((state) => state.data.pages, (_state, page) => {
 *       if (page === "/b") throw new Error("not found");
 *       return page.length;
 *     }),
 *   )
 *   .setEntryPoint("fetch")
 *   .setExitPoint("fetch");
 * await graph.execute(State.create({ pages: ["/a", "/b"] })).catch(({ cause }: ExecutionError) => {
 *   if (cause instanceof ParallelError) console.log(cause.errors.map(({ item }) => item).join()); // /b
 * });
 * ```
 */
export class ParallelError extends WaymarkError {
  /** Each item that failed, in the order of the list. */
  readonly errors: readonly ItemError[];
  /** The results of the items that succeeded, in the order of the list. */
  readonly results: readonly unknown[];

  /** @param total - how many items there are; `results` are those of the items that succeeded. */
  constructor(errors: readonly ItemError[], results: readonly unknown[], total: number) {
    const named = errors
      .slice(0, NAMED)
      .map(({ index, item, cause }) => `item ${index} (${show(item)}) failed: ${messageOf(cause)}`);
    if (errors.length > NAMED) named.push("…");
    const count = errors.length > 1 ? `${errors.length} of ${total} items failed: ` : "";
    super("PARALLEL_FAILED", count + named.join("; "), { cause: errors[0]?.cause });
    this.errors = errors;
    this.results = results;
  }
}

/**
 * A route could not be taken: choosing it failed (`ROUTE_CHOICE`), there is no route of that name
 * (`ROUTE_UNKNOWN`), or its handler failed (`ROUTE_FAILED`). `cause` is what was thrown.
 *
 * @example
 * ```ts
 * import { type ExecutionError, route, RouteError, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ kind: string }>()
 *   .addNode("reply", route((state) => state.data.kind, { bill: (state) => state }))
 *   .setEntryPoint("reply")
 *   .setExitPoint("reply");
 * await graph.execute(State.create({ kind: "praise" })).catch(({ cause }: ExecutionError) => {
 *   if (cause instanceof RouteError) console.log(cause.code, cause.route); // ROUTE_UNKNOWN praise
 * });
 * ```
 */
export class RouteError extends WaymarkError {
  /** Which part failed. */
  declare readonly code: CodeOf<"RouteError">;
  /** The route that was chosen; `undefined` when none was. */
  readonly route: string | undefined;

  /** @param code - which part failed; `route` is the one that was chosen. */
  constructor(
    code: CodeOf<"RouteError">,
    message: string,
    options: { route?: string; cause?: unknown } = {},
  ) {
    super(code, message, options);
    this.route = options.route;
  }
}
