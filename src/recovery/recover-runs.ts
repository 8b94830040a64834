import {
  type CheckpointStore,
  type Claim,
  claimIfAble,
  isCheckpointStore,
  opened,
  summarize,
} from "../checkpoint/store.js";
import { after, timeoutError, unlessLate } from "../clock.js";
import { abortWith, mapLimit, unlessAborted } from "../concurrency.js";
import { ExecutionError, isWaymarkError, show } from "../errors.js";
import { abortSignal, check, checkOptions, flag, integer, timeLimit } from "../options.js";
import { graphsByName } from "../run/graphs.js";
import type { RecoveryAttempt } from "../run/runner.js";
import type { AnyGraph } from "../run/state-graph.js";
import { type RunStatus, underWay } from "../state/record.js";
import { getCheckpointStore } from "../stores/registry.js";

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

/** What {@link recoverRuns} did with a run. */
export interface RunRecovery {
  /** The run. */
  readonly runId: string;
  /** The name of its graph. */
  readonly graph: string;
  /**
   * - `completed`, `paused`: it continued and ended with that status;
   * - `failed`, `timed-out`: this attempt failed or timed out; the next startup tries again;
   * - `gave-up`: the attempts are used up; the run is marked as failed and not tried again;
   * - `skipped`: it was left alone, or the attempt does not count; `reason` says why.
   */
  readonly outcome: "completed" | "paused" | "failed" | "timed-out" | "gave-up" | "skipped";
  /** How often it was tried without progress, including this time. */
  readonly attempts: number;
  /** Whether it first went back one step, past checkpoints that can be read. */
  readonly fellBack: boolean;
  /** Why it was skipped or abandoned. */
  readonly reason?: string;
  /** The error of the run, or of the attempt to load it. */
  readonly error?: unknown;
}

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
  const graphs = graphsByName("options.graphs", options.graphs);
  const { store: given, concurrency = 4 } = options;
  const store = await opened(typeof given === "string" ? getCheckpointStore(given) : given);
  const runs = await findRuns(store);
  return mapLimit(runs, concurrency, (run) => recover(run, store, graphs, options));
}

function checkRecoverOptions(options: RecoverOptions): void {
  const store = check(
    "a CheckpointStore, or the name of one",
    (value) => typeof value === "string" || isCheckpointStore(value),
  );
  const graphs = check(
    "the graphs to recover",
    (value) => typeof value === "object" && value !== null,
  );
  checkOptions("options", options, {
    store,
    graphs,
    maxAttempts: integer(1, true),
    timeoutMs: timeLimit,
    fallbackToPrevious: flag,
    concurrency: integer(1, true),
    signal: abortSignal,
  });
  store("options.store", options.store);
  graphs("options.graphs", options.graphs);
}

interface FoundRun {
  readonly runId: string;
  readonly graph: string;
  /** The error, if its checkpoint can't be read. */
  readonly unreadable?: unknown;
}

async function findRuns(store: CheckpointStore): Promise<readonly FoundRun[]> {
  const unfinished: readonly RunStatus[] = [...underWay, "failed"];
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
  const graph = graphs.get(name);
  if (unreadable !== undefined) return skipped("its checkpoint can't be read", unreadable);
  if (graph === undefined) return skipped(`graph ${show(name)} is not among those given`);
  if (options.signal?.aborted) return skipped("the recovery was cancelled");
  let claim: Claim | undefined;
  try {
    claim = await claimIfAble(store, runId);
  } catch (error) {
    return skipped("it can't be claimed", error);
  }
  if (claim === undefined) return skipped("a live process is working on it");
  return { runId, graph: name, ...(await recoverClaimed(graph, runId, claim, options)) };
}

/** What is known of an attempt while it is under way. */
type Attempt = Pick<RecoveryAttempt<object>, "count" | "isLast" | "fellBack" | "end">;

/** Before anything is known of it. */
const noAttempt: Attempt = { count: 0, isLast: false, fellBack: false, end: async () => {} };

/** The outcome of a run, with its reason and error. */
type Outcome = Pick<RunRecovery, "outcome" | "reason" | "error">;

/** Milliseconds that a cancelled run may take to stop before it is abandoned. */
const GRACE = 5000;

/** Continues one run. It is cancelled when its time is up, and its claim released when it has stopped. Never rejects. */
async function recoverClaimed(
  graph: AnyGraph,
  runId: string,
  claim: Claim,
  { signal, maxAttempts = 3, timeoutMs = 300_000, fallbackToPrevious = false }: RecoverOptions,
): Promise<Omit<RunRecovery, "runId" | "graph">> {
  const policy = { maxAttempts, fallsBack: fallbackToPrevious, leavesForks: true };
  const overdue = timeoutError("the recovery", timeoutMs);
  const controller = new AbortController();
  const stop = controller.signal;
  const ignore = abortWith(controller, signal);
  const cancel = after(timeoutMs, () => controller.abort(overdue));
  let attempt = noAttempt;
  const continued = async (): Promise<Outcome> => {
    try {
      const begun = await graph.recover(runId, policy, stop, claim);
      attempt = begun;
      const { status } = await begun.result;
      if (begun.leftAlone !== undefined) return { outcome: "skipped", reason: begun.leftAlone };
      return { outcome: status === "completed" || status === "paused" ? status : "gave-up" };
    } catch (error) {
      return afterError(error, attempt, stop.reason === overdue);
    }
  };
  const stopped = continued().finally(() => claim.release().catch(() => {}));
  const abandoned = (): Outcome => ({
    outcome: stop.reason === overdue ? "timed-out" : "skipped",
    reason: "it was cancelled and does not stop: its node ignores context.signal",
  });
  const outcome = await unlessAborted(stopped, stop).catch(() =>
    unlessLate(stopped, GRACE, abandoned),
  );
  cancel();
  ignore();
  return { attempts: attempt.count, fellBack: attempt.fellBack, ...outcome };
}

/** The outcome of an attempt that ended with an error. */
async function afterError(
  error: unknown,
  { isLast, end }: Attempt,
  isLate: boolean,
): Promise<Outcome> {
  if (isWaymarkError(error, "CHECKPOINT_CONFLICT")) {
    return { outcome: "skipped", reason: "another process has taken it", error };
  }
  const isAborted = isWaymarkError(error, "ABORTED");
  if (isAborted ? !isLate : !(error instanceof ExecutionError)) {
    await end("taken-back");
    const reason = isAborted ? "the recovery was cancelled" : "it can't be resumed";
    return { outcome: "skipped", reason, error };
  }
  if (!isLast) return { outcome: isAborted ? "timed-out" : "failed", error };
  await end("given-up");
  return { outcome: "gave-up", error };
}
