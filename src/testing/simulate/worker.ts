import { type CheckpointStore, wrap } from "../../checkpoint/store.js";
import { isWaymarkError, messageOf } from "../../errors.js";
import type { EventHandler } from "../../events.js";
import { recoverRuns } from "../../recovery/recover-runs.js";
import { claimOf } from "../../run/loop/control.js";
import { StateGraph } from "../../run/state-graph.js";
import { withProgress } from "../../state/derive.js";
import type { PauseRequest } from "../../state/pauses.js";
import { State } from "../../state/state.js";
import type { Checker } from "./checker.js";
import type { Effects, SimulationTools } from "./effects.js";
import type { Network } from "./network.js";
import type { QueueServer } from "./queue.js";
import type { Storage } from "./storage.js";
import type { Machine, Process, World } from "./world.js";

/** What is simulated. */
export interface SimulationSetup<D extends object> {
  /** The graph, or a function that creates it for each life of each worker. */
  readonly graph: StateGraph<D, string> | ((tools: SimulationTools) => StateGraph<D, string>);
  /** The data that the run with this number, from 0, starts from. */
  readonly data: (run: number) => D;
  /** Answers a pause of a run; without it, a run that waits for an answer counts as ended. */
  readonly answer?: (pause: PauseRequest, runId: string) => unknown;
}

/** Faults of a worker that a test plants. */
export interface WorkerBugs {
  /** Nothing checks whether the lease has expired before a node begins. */
  readonly noCheck?: boolean;
  /** An answer to a pause is acknowledged but not saved. */
  readonly droppedAnswer?: boolean;
  /** A worker trusts the queue's lock on a job, and does not claim the run. */
  readonly noClaim?: boolean;
}

/** The environment of a worker. */
export interface Surroundings<D extends object> {
  readonly setup: SimulationSetup<D>;
  readonly world: World;
  readonly machines: readonly Machine[];
  readonly storage: Storage;
  readonly queueNetwork: Network;
  /** @internal Its types are those of the package `bullmq`. */
  readonly queueServer: QueueServer;
  readonly checker: Checker;
  readonly effects: Effects;
  readonly bugs: WorkerBugs;
}

/** How long a worker waits before it looks for work again, in milliseconds. */
export const REST = 10_000;

/** Effectively unlimited, so that no run ends because its attempts are used up. */
export const ATTEMPTS = 1_000_000;
const DAY = 24 * 60 * 60 * 1000;

export function storeOf<D extends object>(
  process: Process,
  { storage, bugs }: Surroundings<D>,
): CheckpointStore {
  const store = storage.open(process);
  if (!bugs.noCheck) return store;
  return wrap(store, {
    claim: (claim) => async (runId, options) => {
      const { holds: _, ...unchecked } = (await claim(runId, options)) ?? {};
      return "release" in unchecked ? unchecked : undefined;
    },
  });
}

/** The graph of a process, watched, as it is before a store is put under it. */
export function graphOf<D extends object>(
  process: Process,
  { setup, checker, storage, effects }: Surroundings<D>,
): StateGraph<D, string> {
  const { graph: given } = setup;
  const graph = typeof given === "function" ? given(effects.tools(process)) : given;
  const begin: EventHandler<"node.start"> = ({ runId, data: { node, step } }) => {
    // The events of a graph that all workers share reach them all.
    if (effects.current !== process) return;
    effects.began(process, runId, node, step);
    checker.began(runId, node, step, process, storage);
  };
  // Without a listener, warnings would be printed.
  const ignore = (): void => {};
  graph.on("node.start", begin).on("checkpoint.warning", ignore);
  effects.onEnd(() => graph.off("node.start", begin).off("checkpoint.warning", ignore));
  return graph;
}

/** A worker without a queue: it starts the runs it is given, then recovers those that others left, forever. */
export async function liveAlone<D extends object>(
  process: Process,
  runs: readonly number[],
  around: Surroundings<D>,
): Promise<void> {
  const { world, setup, checker } = around;
  const store = storeOf(process, around);
  const draining = new AbortController().signal;
  const base = graphOf(process, around);
  const claiming = { claim: claimOf };
  const graph = StateGraph.inside(base, store, draining, DAY, claiming);
  const recovery = {
    store,
    graphs: [graph],
    maxAttempts: ATTEMPTS,
    timeoutMs: DAY,
    concurrency: 1,
  };
  let isNew = true;
  for (;;) {
    for (const run of runs) {
      const runId = runIdOf(run);
      if (!isNew && checker.isBegun(runId)) continue;
      await tolerate(graph.resumeOrStart(State.create(setup.data(run), { runId })), around);
    }
    isNew = false;
    await tolerate(recoverRuns(recovery), around);
    await answerPauses(store, process, around, (runId, answering) => ({
      keep: (name, value) =>
        StateGraph.inside(base, answering, draining, DAY, claiming).answer(runId, name, value),
      // A resume without an answer would count as one.
      end: () => graph.resume(runId),
    }));
    await world.wait(REST * (0.5 + process.random.next()));
  }
}

/** How answers reach a run: `keep` saves one, `end` is called after the last. */
export interface Answering {
  keep(pause: string, value: unknown): Promise<unknown>;
  end?(): Promise<unknown>;
}

/** Answers what runs wait for, each pause once. */
export async function answerPauses<D extends object>(
  store: CheckpointStore,
  process: Process,
  around: Surroundings<D>,
  answeringOf: (runId: string, store: CheckpointStore) => Answering,
): Promise<void> {
  const { setup, checker, bugs, world } = around;
  const { answer } = setup;
  if (answer === undefined) return;
  const kept = bugs.droppedAnswer ? withoutAnswers(store) : store;
  for (const { runId } of (await tolerate(store.runs?.({ status: "paused" }), around)) ?? []) {
    const { pauses = [] } = (await tolerate(store.load<D>(runId), around)) ?? {};
    const answering = answeringOf(runId, kept);
    let isReady = true;
    for (const pause of pauses) {
      if (checker.isAnswered(runId, pause.name)) continue;
      const keeping = answering.keep(pause.name, answer(pause, runId)).then(() => true);
      const isKept = await tolerate(keeping, around);
      isReady &&= isKept === true;
      if (!isKept) continue;
      world.note(process, `answered ${pause.name} of ${runId}`);
      checker.answered(runId, pause.name);
    }
    if (isReady) await tolerate(answering.end?.(), around);
  }
}

/** The planted fault: a save of an answer that leaves out the answer. */
function withoutAnswers(store: CheckpointStore): CheckpointStore {
  return wrap(store, {
    save: (save) => (state, options) => save(withProgress(state, { answers: [] }), options),
  });
}

/** The value of a promise; `undefined` if it fails in a way that faults explain. Any other error is a violation. */
export async function tolerate<T, D extends object>(
  promise: Promise<T> | undefined,
  { checker, world }: Pick<Surroundings<D>, "checker" | "world">,
): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    world.note(world.current, `failed: ${messageOf(error)}`);
    if (!isWaymarkError(error))
      checker.fail("error", `${world.current?.name}: ${messageOf(error)}`);
    return undefined;
  }
}

export function runIdOf(run: number): string {
  return `run-${run}`;
}
