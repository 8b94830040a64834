import type { CheckpointStore, StoreContext } from "../../checkpoint/store.js";
import { isWaymarkError, messageOf } from "../../errors.js";
import type { EventHandler } from "../../events.js";
import { recoverRuns } from "../../recovery/recover-runs.js";
import { claimOf } from "../../run/claim.js";
import { StateGraph } from "../../run/state-graph.js";
import { withProgress } from "../../state/derive.js";
import type { PauseRequest } from "../../state/record.js";
import { State } from "../../state/state.js";
import { SimulatedBackend, SimulatedStore } from "./backend.js";
import type { Checker } from "./checker.js";
import type { Database } from "./database.js";
import type { Effects, SimulationTools } from "./effects.js";
import type { Network } from "./network.js";
import type { Process, World } from "./world.js";

/** What is simulated. */
export interface SimulationSetup<D extends object> {
  /** The graph, or what makes it, once for each life of each worker. */
  readonly graph: StateGraph<D, string> | ((tools: SimulationTools) => StateGraph<D, string>);
  /** The data that the run of this number, from 0 up, starts from. */
  readonly data: (run: number) => D;
  /** Answers a pause of a run; without it, a run that waits for an answer counts as ended. */
  readonly answer?: (pause: PauseRequest, runId: string) => unknown;
}

/** What surrounds a worker. */
export interface Surroundings<D extends object> {
  readonly setup: SimulationSetup<D>;
  readonly world: World;
  readonly network: Network;
  readonly database: Database;
  readonly checker: Checker;
  readonly effects: Effects;
  /** Faults that a test plants: nobody asks whether a lease has run out; an answer is saved without itself. */
  readonly bugs: { readonly noCheck?: boolean; readonly droppedAnswer?: boolean };
}

/** How long a worker rests before it looks for work again, in milliseconds. */
const REST = 10_000;

/** At the latest, every so many checkpoints are written whole: few, so that both kinds are met often. */
const SNAPSHOT_EVERY = 4;

/** So often that no run is given up: what ends a run is what is looked for. */
const ATTEMPTS = 1_000_000;
const DAY = 24 * 60 * 60 * 1000;

/** The store of a process. */
export function storeOf<D extends object>(
  process: Process,
  { network, database, checker, bugs }: Surroundings<D>,
): CheckpointStore {
  const onSaved = checker.saved.bind(checker);
  const isUnchecked = bugs.noCheck === true;
  const backend = new SimulatedBackend(process, network, database, onSaved, isUnchecked);
  return new SimulatedStore(backend, SNAPSHOT_EVERY);
}

/** The graph of a process, watched, as it is before a store is put under it. */
function graphOf<D extends object>(
  process: Process,
  { setup, checker, database, effects }: Surroundings<D>,
): StateGraph<D, string> {
  const { graph: given } = setup;
  const graph = typeof given === "function" ? given(effects.tools(process)) : given;
  const begin: EventHandler<"node.start"> = ({ runId, data: { node, step } }) => {
    // The events of a graph that all workers share reach them all.
    if (effects.current !== process) return;
    effects.began(process, runId, node, step);
    checker.began(runId, node, step, process, database);
  };
  // What nobody listens to would be printed.
  const ignore = (): void => {};
  graph.on("node.start", begin).on("checkpoint.warning", ignore);
  effects.onEnd(() => graph.off("node.start", begin).off("checkpoint.warning", ignore));
  return graph;
}

/** A worker without a queue: it starts the runs it is given, then recovers those that others have left, for ever. */
export async function liveAlone<D extends object>(
  process: Process,
  runs: readonly number[],
  around: Surroundings<D>,
): Promise<void> {
  const { world, setup, checker } = around;
  const store = storeOf(process, around);
  const draining = new AbortController().signal;
  const base = graphOf(process, around);
  const graph = StateGraph.inside(base, store, draining, DAY, { claim: claimOf });
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
    await answerPauses(base, store, process, around);
    await world.wait(REST * (0.5 + process.random.next()));
  }
}

/** Answers what runs wait for, each pause once, and continues them. */
async function answerPauses<D extends object>(
  base: StateGraph<D, string>,
  store: CheckpointStore,
  process: Process,
  around: Surroundings<D>,
): Promise<void> {
  const { setup, checker, bugs, world } = around;
  const { answer } = setup;
  if (answer === undefined) return;
  const answering = bugs.droppedAnswer ? withoutAnswers(store) : store;
  const never = new AbortController().signal;
  const inside = (to: CheckpointStore): StateGraph<D, string> =>
    StateGraph.inside(base, to, never, DAY, { claim: claimOf });
  for (const { runId } of (await tolerate(store.runs?.({ status: "paused" }), around)) ?? []) {
    const { pauses = [] } = (await tolerate(store.load<D>(runId, {}, unheard), around)) ?? {};
    let isReady = true;
    for (const pause of pauses) {
      if (checker.isAnswered(runId, pause.name)) continue;
      const value = answer(pause, runId);
      const kept = inside(answering).signal(runId, pause.name, value);
      const isKept = await tolerate(
        kept.then(() => true),
        around,
      );
      isReady &&= isKept === true;
      if (!isKept) continue;
      world.note(process, `answered ${pause.name} of ${runId}`);
      checker.answered(runId, pause.name);
    }
    // A resume without an answer would be one.
    if (isReady) await tolerate(inside(store).resume(runId), around);
  }
}

/** The planted fault: what an answer is saved with is all but the answer. */
function withoutAnswers(store: CheckpointStore): CheckpointStore {
  return new Proxy(store, {
    get: (target, key) => {
      if (key === "save") {
        const save: CheckpointStore["save"] = (state, options) =>
          target.save(withProgress(state, { signals: [] }), options);
        return save;
      }
      const member: unknown = Reflect.get(target, key, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

/** What a promise gives; nothing if it fails as it may under faults. Anything else is a violation. */
export async function tolerate<T, D extends object>(
  promise: Promise<T> | undefined,
  { checker, world }: Pick<Surroundings<D>, "checker" | "world">,
): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    const isForeseen =
      isWaymarkError(error) || (error instanceof Error && error.name === "BackendError");
    world.note(world.current, `failed: ${messageOf(error)}`);
    if (!isForeseen) checker.fail("error", `${world.current?.name}: ${messageOf(error)}`);
    return undefined;
  }
}

/** What a store warns of is part of the simulation, and nothing to print. */
export const unheard: StoreContext = { emit: () => {} };

export function runIdOf(run: number): string {
  return `run-${run}`;
}
