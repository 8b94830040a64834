import { cycle } from "./cycle.mjs";
import { newFolder } from "./folder.mjs";
import { conversation } from "./messages.mjs";
import { entry } from "./waymark.mjs";

const { State } = await import(entry);

const runId = "cycle";

/**
 * The `prepare` and `run` of a contender: a cycle of a waymark graph that a store in a folder keeps each step of; or
 * what reads such a run.
 * @param {(options: object) => import("waymark").CheckpointStore} open gets `root` and what `options.store` says
 */
export function cycleInStore(open) {
  let store;
  let filled;

  /** A run of so many steps, as another process has left it. */
  async function fill({ kilobytes, saved, store: options = {} }) {
    const root = newFolder();
    store = open({ root, durability: "os", ...options });
    await cycle(store, saved, options.keep).execute(
      State.create(conversation(kilobytes), { runId }),
    );
    const kept = (await store.history(runId)).length;
    await store.close();
    return { graph: cycle(store, saved), root, kept };
  }

  async function prepare({ what = "save", ...options }) {
    if (what !== "save") {
      filled ??= await fill(options);
      return;
    }
    await store?.close();
    store = open({ root: newFolder(), ...options.store });
    // The folders, or the log, are there: what is measured is a save, not the first of all.
    await store.save(State.create({ first: true }));
  }

  /**
   * @param {number} steps of all runs together
   * @param {object} options
   * @param {number} options.kilobytes the size of a state
   * @param {number} [options.runs] how many runs at once
   * @param {"save" | "load" | "history"} [options.what]
   * @param {object} [options.store] options of the store
   * @param {number} [options.saved] how many steps the run that is read has
   */
  async function run(steps, { kilobytes, runs = 1, what = "save" }) {
    if (what === "save") {
      const graph = cycle(store, steps / runs);
      const all = Array.from({ length: runs }, () =>
        graph.execute(State.create(conversation(kilobytes))),
      );
      return (await Promise.all(all)).reduce((sum, { data }) => sum + data.n, 0);
    }
    const { graph, root, kept } = filled;
    for (let step = 0; step < steps; step++) {
      // Each time as a new process would.
      store = open({ root });
      if (what === "load") graph.toMermaid({ state: await store.load(runId) });
      else if ((await store.history(runId)).length !== kept) throw new Error("history is short");
      await store.close();
    }
    return steps;
  }

  return { prepare, run, close: () => store.close() };
}
