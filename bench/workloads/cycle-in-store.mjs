import { newFolder } from "../lib/folder.mjs";
import { entry } from "../lib/waymark.mjs";
import { cycle } from "./cycle.mjs";
import { conversation } from "./messages.mjs";

const { State } = await import(entry);

const runId = "cycle";
const PAGE = 50;

/**
 * The `prepare` and `run` of a contender: a cycle of a waymark graph that a store in a folder keeps each step of; or
 * what reads such a run.
 * @param {(options: object) => import("waymark").CheckpointStore} open gets `root` and what `options.store` says
 */
export function cycleInStore(open) {
  let store;
  let filled;

  /** A run of so many steps, or so many runs, as another process has left them. */
  async function fill({ kilobytes, saved, what, store: options = {} }) {
    const root = newFolder();
    store = open({ root, durability: "os", ...options });
    let kept = 0;
    if (what === "runs") await fillRuns(store, saved, kilobytes);
    else {
      const state = State.create(conversation(kilobytes), { runId });
      await stopBeforeDone(cycle(store, saved, options.keep), state);
      kept = (await store.history(runId)).length;
    }
    const graph = cycle(store, saved);
    await store.close();
    store = undefined;
    return { graph, root, kept };
  }

  async function prepare({ what = "save", opened = false, ...options }) {
    if (what !== "save") {
      filled ??= await fill({ what, ...options });
      if (opened) store ??= open({ root: filled.root });
      return;
    }
    await store?.close();
    store = open({ root: newFolder(), ...options.store });
    // The folders, or the tables, are there: what is measured is a save, not the first of all.
    await store.save(State.create({ first: true }));
  }

  /** Reads once, as `what` says. */
  async function read(what, filter) {
    const { graph, kept } = filled;
    if (what === "load") graph.nextNode(await store.load(runId));
    else if (what === "history") {
      if ((await store.history(runId)).length !== kept) throw new Error("history is short");
    } else if ((await store.runs({ ...filter, limit: PAGE })).length > PAGE) {
      throw new Error("the page is long");
    }
  }

  /**
   * @param {number} steps of all runs together
   * @param {object} options
   * @param {number} options.kilobytes the size of a state
   * @param {number} [options.runs] how many runs at once
   * @param {"save" | "load" | "history" | "runs"} [options.what]
   * @param {object} [options.store] options of the store
   * @param {number} [options.saved] how many steps the run that is read has, or how many runs there are
   * @param {boolean} [options.opened] whether the store that reads is open already
   * @param {object} [options.filter] of the runs
   */
  async function run(steps, { kilobytes, runs = 1, what = "save", opened = false, filter = {} }) {
    if (what === "save") {
      const graph = cycle(store, steps / runs);
      const all = Array.from({ length: runs }, () =>
        graph.execute(State.create(conversation(kilobytes))),
      );
      return (await Promise.all(all)).reduce((sum, { data }) => sum + data.n, 0);
    }
    for (let step = 0; step < steps; step++) {
      if (opened) {
        await read(what, filter);
        continue;
      }
      // Each time as a new process would.
      store = open({ root: filled.root });
      await read(what, filter);
      await store.close();
    }
    return steps;
  }

  return { prepare, run, close: () => store.close() };
}

/** Runs a cycle up to its last node, which is left for a resume. */
async function stopBeforeDone(graph, state) {
  const controller = new AbortController();
  graph.on("edge.transition", ({ data }) => {
    if (data.to === "done") controller.abort();
  });
  await graph.execute(state, { signal: controller.signal }).catch((error) => {
    if (error.code !== "ABORTED") throw error;
  });
}

/** Saves so many runs, many at a time. */
export async function fillRuns(store, count, kilobytes) {
  const data = conversation(kilobytes);
  for (let left = count; left > 0; left -= 200) {
    const some = Array.from({ length: Math.min(left, 200) }, () => store.save(State.create(data)));
    await Promise.all(some);
  }
}
