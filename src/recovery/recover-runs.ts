import { DeferredStore } from "../checkpoint/deferred.js";
import {
  type CheckpointStore,
  type Claim,
  isCheckpointStore,
  summarize,
} from "../checkpoint/store.js";
import { after } from "../clock.js";
import { ConfigError, isWaymarkError, show } from "../errors.js";
import { check, checkOptions, flag, integer } from "../options.js";
import type { Prepare } from "../run/runner.js";
import type { RunStatus } from "../state/record.js";
import { getCheckpointStore } from "../stores/registry.js";
import { Attempt } from "./attempt.js";

/** A graph whose runs can be recovered: any StateGraph. */
export interface RecoverableGraph {
  /** Its name, which its checkpoints carry. */
  readonly name: string;
  /** See {@link StateGraph.drain}. */
  drain(): Promise<void>;
  /** @internal */
  recover(
    runId: string,
    signal: AbortSignal,
    prepare: Prepare,
  ): Promise<{ readonly status: RunStatus } | undefined>;
}

/** Options of {@link recoverRuns}. */
export interface RecoverOptions {
  /** The store that the graphs save in, or the name of a registered one. */
  readonly store: CheckpointStore | string;
  /** The graphs whose runs to recover; in an object a key stands for one more name of its graph, such as an old one. */
  readonly graphs: readonly RecoverableGraph[] | Readonly<Record<string, RecoverableGraph>>;
  /** How often to try a run that gets no further, over all restarts; at least 1, 3 by default. */
  readonly maxAttempts?: number;
  /** Milliseconds that one run may take, then it is cancelled; 300,000 by default. */
  readonly timeoutMs?: number;
  /** Whether to go back by one checkpoint when the last attempt failed at the same place; `true` by default. */
  readonly fallbackToPrevious?: boolean;
  /** How many runs to recover at once; at least 1, 4 by default. */
  readonly concurrency?: number;
  /** Stops the recovery: runs that are under way are cancelled, and their attempt does not count. */
  readonly signal?: AbortSignal | undefined;
}

/** What {@link recoverRuns} did with a run. */
export interface RunRecovery {
  /** The run. */
  readonly runId: string;
  /** The name of its graph. */
  readonly graph: string;
  /**
   * - `completed`, `paused`: it went on and came to that;
   * - `failed`, `timed-out`: this attempt did; the next startup tries again;
   * - `gave-up`: there were enough attempts, the run is marked as failed and is tried no more;
   * - `skipped`: it was left alone, or its attempt does not count; `reason` says why.
   */
  readonly outcome: "completed" | "paused" | "failed" | "timed-out" | "gave-up" | "skipped";
  /** How often it was tried at this place, with this time; 0 when it never was. */
  readonly attempts: number;
  /** Whether it went back by one checkpoint first. */
  readonly fellBack: boolean;
  /** Why it was skipped, or did not stop. */
  readonly reason?: string;
  /** What the run, or the attempt to load it, failed with. */
  readonly error?: unknown;
}

/** How long a run that was cancelled may take to stop before it is left behind, in milliseconds. */
const GRACE = 5000;

const unfinished: readonly RunStatus[] = ["pending", "in_progress", "failed"];

/**
 * Goes on with the runs that a process left behind: to be called when the next one starts. Completed
 * runs are not touched and paused ones wait. A run that a living process works on is left alone, also
 * when two processes recover at once. How often a run was tried is saved with it; one that gets further
 * counts afresh.
 *
 * @returns what was done with each unfinished run, in the order of the store. It never rejects because
 * of a run.
 * @throws ConfigError when an option is not what it must be, and what the store throws when it can't list its runs.
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
 * for (const run of await recoverRuns({ store, graphs: [graph] })) {
 *   console.log(run.runId, run.outcome, run.attempts); // monday completed 1
 * }
 * ```
 */
export async function recoverRuns(options: RecoverOptions): Promise<RunRecovery[]> {
  const recovery = new RunsRecovery(options);
  return recovery.run(options.concurrency ?? 4);
}

interface FoundRun {
  readonly runId: string;
  readonly graph: string;
  readonly error?: unknown;
}

class RunsRecovery {
  readonly #options: RecoverOptions;
  readonly #store: CheckpointStore;
  readonly #graphs: ReadonlyMap<string, RecoverableGraph>;

  constructor(options: RecoverOptions) {
    checkOptions("options", options, {
      store: check(
        "a CheckpointStore, or the name of one",
        (value) => typeof value === "string" || isCheckpointStore(value),
      ),
      graphs: () => {},
      maxAttempts: integer(1, true),
      timeoutMs: check(
        "a number of milliseconds above 0",
        (value) => typeof value === "number" && value > 0,
      ),
      fallbackToPrevious: flag,
      concurrency: integer(1, true),
      signal: check("an AbortSignal", (value) => value instanceof AbortSignal),
    });
    const { store } = options;
    if (store === undefined) throw new ConfigError("options.store", "is missing");
    this.#options = options;
    this.#store = typeof store === "string" ? getCheckpointStore(store) : store;
    this.#graphs = byName(options.graphs);
  }

  /** Recovers all runs, so many at a time. */
  async run(concurrency: number): Promise<RunRecovery[]> {
    const store = this.#store instanceof DeferredStore ? await this.#store.ready() : this.#store;
    const runs = await findRuns(store);
    const reports: RunRecovery[] = [];
    const entries = runs.entries();
    const work = async (): Promise<void> => {
      for (const [index, run] of entries) reports[index] = await this.#claimAndRecover(store, run);
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, runs.length) }, work));
    return reports;
  }

  async #claimAndRecover(store: CheckpointStore, run: FoundRun): Promise<RunRecovery> {
    const { runId, graph: name } = run;
    const skipped = (reason: string, error?: unknown): RunRecovery => ({
      runId,
      graph: name,
      outcome: "skipped",
      attempts: 0,
      fellBack: false,
      reason,
      ...(error !== undefined && { error }),
    });
    if (run.error !== undefined) return skipped("its checkpoint can't be read", run.error);
    const graph = this.#graphs.get(name);
    if (graph === undefined) return skipped(`graph ${show(name)} is not among those given`);
    if (this.#options.signal?.aborted) return skipped("the recovery was cancelled");
    let claim: Claim | undefined;
    try {
      claim = store.claim === undefined ? { release: async () => {} } : await store.claim(runId);
    } catch (error) {
      return skipped("it can't be claimed", error);
    }
    if (claim === undefined) return skipped("a living process works on it");
    return this.#recover(store, run, graph, claim);
  }
}

function byName(graphs: RecoverOptions["graphs"]): Map<string, RecoverableGraph> {
  const known = new Map<string, RecoverableGraph>();
  return known;
}

async function findRuns(store: CheckpointStore): Promise<FoundRun[]> {
  return [];
}
