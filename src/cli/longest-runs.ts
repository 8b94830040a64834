import type { CheckpointStore } from "../checkpoint/store.js";
import { longestPath } from "../graph/description.js";
import type { GraphIdentity } from "../state/record.js";
import type { Context } from "./context.js";

/** The most steps a run of a graph can have: the length of its longest path. */
export class LongestRuns {
  readonly #context: Context;
  readonly #store: CheckpointStore;
  readonly #known = new Map<string, Promise<number | undefined>>();

  constructor(context: Context, store: CheckpointStore) {
    this.#context = context;
    this.#store = store;
  }

  /** `undefined` if the graph has cycles or is unknown. */
  async of(graph: GraphIdentity | undefined): Promise<number | undefined> {
    if (graph === undefined) return undefined;
    const found = this.#known.get(graph.fingerprint) ?? this.#find(graph);
    this.#known.set(graph.fingerprint, found);
    return found;
  }

  async #find({ name, fingerprint }: GraphIdentity): Promise<number | undefined> {
    try {
      const { graphs } = await this.#context.config();
      const saved = await this.#store.topology?.(fingerprint);
      const known = saved ?? (graphs && (await this.#context.graph(name)).topology);
      return known && longestPath(known);
    } catch {
      // A command that only displays a run works without its graph.
      return undefined;
    }
  }
}
