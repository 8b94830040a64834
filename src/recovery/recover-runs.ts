import {
  type CheckpointStore,
  type Claim,
  isCheckpointStore,
  opened,
  summarize,
} from "../checkpoint/store.js";
import { mapLimit } from "../concurrency.js";
import { ConfigError, show } from "../errors.js";
import { abortSignal, check, checkOptions, flag, integer, timeLimit } from "../options.js";
import type { AnyGraph } from "../run/state-graph.js";
import type { RunStatus } from "../state/record.js";
import { getCheckpointStore } from "../stores/registry.js";
import { type RunRecovery, recoverRun } from "./recover-run.js";

/** Options of {@link recoverRuns}. */
export interface RecoverOptions {
  /** The store that the graphs save in, or the name of a registered one. */
  readonly store: CheckpointStore | string;
  /**
   * The graphs whose runs to recover. In an object, each key is an additional name of its graph, such as an old
   * one.
   */
  readonly graphs: readonly AnyGraph[] | Readonly<Record<string, AnyGraph>>;
  /** How often to try a run that makes no progress, across all restarts; at least 1, 3 by default. */
  readonly maxAttempts?: number;
  /** Milliseconds that one run may take before it is cancelled; 300,000 by default. */
  readonly timeoutMs?: number;
  /**
   * Whether to go back one completed step if the last attempt failed at the same place, and run its node again;
   * `false` by default. Corrupt checkpoints are always skipped.
   */
  readonly fallbackToPrevious?: boolean;
  /** How many runs to recover at once; at least 1, 4 by default. */
  readonly concurrency?: number;
  /** Stops the recovery: the runs that are under way are cancelled, and their attempts don't count. */
  readonly signal?: AbortSignal | undefined;
}

const unfinished: readonly RunStatus[] = ["pending", "in_progress", "failed"];

/**
 * Continues the runs that a process left behind; call it when the next one starts. Completed runs are not
 * touched, and paused ones wait, as do forks and rolled-back runs that nobody has resumed. A run that a live
 * process is working on is left alone, even if two processes recover at once. How often a run was tried is
 * saved with it; a run that makes progress starts counting again.
 *
 * @returns what was done with each unfinished run. It does not reject because of a run.
 * @throws ConfigError if an option is invalid, and the store's error if it can't list its runs.
 *
 * @example
 * ```ts
 * import { MemoryStore, recoverRuns, State, StateGraph } from "waymark";
 *
 * const store = new MemoryStore();
 * let online = false;
 * const graph = new StateGraph<{ pages: number }>({ name: "crawl", checkpoint: { store, interval: 1 } })
 *   .addNode("fetch", () => {
 *     if (!online) throw new Error("offline");
 *     return { pages: 7 };
 *   })
 *   .setEntryPoint("fetch")
 *   .setExitPoint("fetch");
 * await graph.execute(State.create({ pages: 0 }, { runId: "monday" })).catch(() => {});
 *
 * online = true;
 * const [run] = await recoverRuns({ store, graphs: [graph] });
 * console.log(run?.runId, run?.outcome, run?.attempts); // monday completed 1
 * ```
 */
export async function recoverRuns(options: RecoverOptions): Promise<RunRecovery[]> {
  checkRecoverOptions(options);
  const graphs = byName(options.graphs);
  const store = await resolveStore(options.store);
  const runs = await findRuns(store);
  const { concurrency = 4 } = options;
  return mapLimit(runs, concurrency, (run) => recover(run, store, graphs, options));
}

function checkRecoverOptions(options: RecoverOptions): void {
  const store = check(
    "a CheckpointStore, or the name of one",
    (value) => typeof value === "string" || isCheckpointStore(value),
  );
  checkOptions("options", options, {
    store,
    graphs: () => {},
    maxAttempts: integer(1, true),
    timeoutMs: timeLimit,
    fallbackToPrevious: flag,
    concurrency: integer(1, true),
    signal: abortSignal,
  });
  store("options.store", options.store);
}

/** The graphs by name, and by the keys they were given under. */
function byName(graphs: RecoverOptions["graphs"]): ReadonlyMap<string, AnyGraph> {
  const found = new Map<string, AnyGraph>();
  if (typeof graphs !== "object" || graphs === null) {
    throw new ConfigError("options.graphs", `must be the graphs to recover; got ${show(graphs)}`);
  }
  for (const [key, graph] of Object.entries<AnyGraph>({ ...graphs })) {
    const option = `options.graphs.${key}`;
    if (typeof graph?.recover !== "function") {
      throw new ConfigError(option, `must be a StateGraph; got ${show(graph)}`);
    }
    for (const name of Array.isArray(graphs) ? [graph.name] : [graph.name, key]) {
      if ((found.get(name) ?? graph) !== graph) {
        const problem = `is the second graph named ${show(name)}: give each its own config.name`;
        throw new ConfigError(option, problem);
      }
      found.set(name, graph);
    }
  }
  return found;
}

async function resolveStore(given: CheckpointStore | string): Promise<CheckpointStore> {
  const store = typeof given === "string" ? getCheckpointStore(given) : given;
  return opened(store);
}

interface FoundRun {
  readonly runId: string;
  readonly graph: string;
  /** The error, if its checkpoint can't be read. */
  readonly unreadable?: unknown;
}

async function findRuns(store: CheckpointStore): Promise<readonly FoundRun[]> {
  if (store.runs !== undefined) return store.runs({ status: unfinished });
  const found: FoundRun[] = [];
  for (const runId of await store.list()) {
    try {
      const run = summarize(await store.load(runId));
      if (unfinished.includes(run.status)) found.push(run);
    } catch (error) {
      found.push({ runId, graph: "", unreadable: error });
    }
  }
  return found;
}

async function recover(
  { runId, graph: name, unreadable }: FoundRun,
  store: CheckpointStore,
  graphs: ReadonlyMap<string, AnyGraph>,
  options: RecoverOptions,
): Promise<RunRecovery> {
  const skipped = (reason: string, error?: unknown): RunRecovery => ({
    ...{ runId, graph: name, outcome: "skipped", attempts: 0, fellBack: false, reason },
    ...(error !== undefined && { error }),
  });
  const { signal, maxAttempts = 3, timeoutMs = 300_000, fallbackToPrevious = false } = options;
  const graph = graphs.get(name);
  if (unreadable !== undefined) return skipped("its checkpoint can't be read", unreadable);
  if (graph === undefined) return skipped(`graph ${show(name)} is not among those given`);
  if (signal?.aborted) return skipped("the recovery was cancelled");
  let claim: Claim | undefined;
  try {
    claim = store.claim === undefined ? unclaimed : await store.claim(runId);
  } catch (error) {
    return skipped("it can't be claimed", error);
  }
  if (claim === undefined) return skipped("a live process is working on it");
  const policy = { maxAttempts, fallsBack: fallbackToPrevious, leavesForks: true };
  const recovered = await recoverRun(graph, runId, claim, { policy, timeoutMs, signal });
  return { runId, graph: name, ...recovered };
}

/** For stores without claims: if two processes recover a run, one gets a conflict. */
const unclaimed: Claim = { release: async () => {} };
