import { type CheckpointStore, isCheckpointStore, wrap } from "../checkpoint/store.js";
import { ConfigError, show } from "../errors.js";
import { checkOptions, integer, oneOf } from "../options.js";

/** The save at which {@link crashAt} simulates the death of the process. */
export interface CrashPoint {
  /** The number of the save, from 1; the first is the one before the first node. */
  readonly save: number;
  /**
   * `"before"`, the default: the save is lost. `"after"`: the store has it, but the process died before it got the
   * acknowledgement.
   */
  readonly when?: "before" | "after";
}

/**
 * Wraps a store so that at one save it behaves as if the process had died: that call and all later writes are
 * rejected, which leaves the store as a crash would have. Then continue with a new graph on the original store, as
 * a new process would.
 *
 * @throws ConfigError if the store or the save to die at is missing.
 *
 * @example
 * ```ts
 * import { MemoryStore, State, StateGraph } from "waymark";
 * import { crashAt } from "waymark/testing";
 *
 * const store = new MemoryStore();
 * const graph = (checkpoints = store) =>
 *   new StateGraph<{ words: string[] }>({ checkpoint: { store: checkpoints, interval: 1 } })
 *     .addNode("a", (state) => ({ words: [...state.data.words, "way"] }))
 *     .addNode("b", (state) => ({ words: [...state.data.words, "mark"] }))
 *     .addEdge("a", "b")
 *     .setEntryPoint("a")
 *     .setExitPoint("b");
 *
 * const state = State.create({ words: [] as string[] });
 * await graph(crashAt(store, { save: 2 })).execute(state).catch(() => {});
 * const final = await graph().resume(state.runId);
 * console.log(final.data.words.join("")); // waymark
 * ```
 */
export function crashAt<S extends CheckpointStore>(store: S, point: CrashPoint): S {
  if (!isCheckpointStore(store)) {
    throw new ConfigError("store", `must be a CheckpointStore; got ${show(store)}`);
  }
  checkOptions("point", point, { save: integer(1), when: oneOf("before", "after") });
  if (point.save === undefined) throw new ConfigError("point.save", "is missing");
  let saves = 0;
  let isDead = false;
  const dead = (): Error =>
    new Error(`the process died at save ${point.save}: simulated by crashAt`);

  const written =
    <A extends readonly unknown[], R>(write: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      if (isDead) throw dead();
      return write(...args);
    };

  const wrapped = wrap<CheckpointStore>(store, {
    save: (save) => async (state, options) => {
      saves += 1;
      if (isDead) throw dead();
      if (saves < point.save) return save(state, options);
      isDead = true;
      if (point.when === "after") await save(state, options);
      throw dead();
    },
    delete: written,
    prune: written,
    import: written,
  });
  // What the store has besides the contract stays, too.
  return new Proxy(store, {
    get: (target, key) => {
      if (Object.hasOwn(wrapped, key)) return Reflect.get(wrapped, key);
      const member: unknown = Reflect.get(target, key, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
