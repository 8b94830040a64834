import {
  type CheckpointAt,
  type CheckpointStore,
  type Claim,
  isNewest,
} from "../checkpoint/store.js";
import { ConfigError, isWaymarkError, show } from "../errors.js";
import type { GraphNode } from "../graph/node.js";
import type { Topology } from "../graph/topology.js";
import { State } from "../state/state.js";
import type { Checkpoints } from "./checkpoints.js";
import type { Settings } from "./config.js";
import { outsideRun } from "./failure.js";
import { answered, type InputSchemas } from "./pauses.js";
import { restarted } from "./restart.js";
import { type Plan, Run } from "./run.js";
import { Saver } from "./saver.js";
import type { Gate } from "./stream.js";

/** How a run is started or resumed. */
export interface RunOptions extends CheckpointAt {
  readonly signal?: AbortSignal | undefined;
  readonly input?: unknown;
  readonly gate?: Gate | undefined;
}

/** Makes of a run's newest State the one to go on from, or to leave it at; `undefined` leaves the run alone. */
export type Prepare = <D extends object>(
  newest: State<D>,
  load: (checkpointId: string) => Promise<State<D>>,
) => Promise<{ readonly state: State<D>; readonly goOn: boolean } | undefined>;

/** A run while it is under way, also before it has begun. */
class Running {
  #run: { drain(): void } | undefined;
  #drains = false;

  attach(run: { drain(): void }): void {
    this.#run = run;
    if (this.#drains) run.drain();
  }

  drain(): void {
    this.#drains = true;
    this.#run?.drain();
  }
}

/** Starts the runs of a graph in this process, and goes on with them. */
export class Runner<D extends object> {
  readonly #settings: Settings;
  readonly #topology: Topology<D>;
  readonly #checkpoints: Checkpoints<D>;
  readonly #inputs: ReadonlyMap<string, InputSchemas>;
  readonly #draining: AbortSignal | undefined;
  readonly #active = new Map<Running, Promise<unknown>>();

  /**
   * @param inputs - what checks the input of each node's pauses.
   * @param draining - drains the runs too; that of the node they are in.
   */
  constructor(
    settings: Settings,
    topology: Topology<D>,
    checkpoints: Checkpoints<D>,
    inputs: ReadonlyMap<string, InputSchemas>,
    draining?: AbortSignal,
  ) {
    this.#settings = settings;
    this.#topology = topology;
    this.#checkpoints = checkpoints;
    this.#inputs = inputs;
    this.#draining = draining;
  }

  start(state: State<D>, options: RunOptions): Promise<State<D>> {
    return this.#track(state.runId, (running) => this.#start(state, options, running));
  }

  resume(runId: string, options: RunOptions): Promise<State<D>> {
    const { step, checkpointId } = options;
    return this.#track(runId, async (running) => {
      const loaded = await this.#checkpoints.load(runId, { step, checkpointId });
      return this.#goOn(loaded, options, running);
    });
  }

  resumeOrStart(state: State<D>, options: RunOptions): Promise<State<D>> {
    return this.#track(state.runId, async (running) => {
      const loaded = await this.#checkpoints.load(state.runId, {}).catch((error: unknown) => {
        if (isWaymarkError(error, "CHECKPOINT_CORRUPT")) {
          const data = { action: "load", node: "", error: error.message } as const;
          this.#checkpoints.emit("checkpoint.error", state.runId, data);
        } else if (!isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) {
          throw error;
        }
        return undefined;
      });
      return loaded === undefined
        ? this.#start(state, options, running)
        : this.#goOn(loaded, options, running);
    });
  }

  /** Goes on with a run from what `prepare` makes of it, which is saved first; `undefined` when it was left alone. */
  recover(runId: string, options: RunOptions, prepare: Prepare): Promise<State<D> | undefined> {
    return this.#track(runId, async (running) => {
      const loaded = await this.#checkpoints.load(runId, {});
      this.#checkpoints.nodeAfter(loaded);
      this.#unfinished(loaded);
      const load = (checkpointId: string) => this.#checkpoints.load(runId, { checkpointId });
      const prepared = await prepare(loaded, load);
      if (prepared === undefined) return undefined;
      const state = await this.#save(prepared.state, await this.#saver(loaded));
      if (!prepared.goOn) return state;
      return this.#goOn(state, options, running, loaded.reason === BREAKPOINT);
    });
  }

  /** Lets running nodes finish, and waits until all runs have stopped. */
  async drain(): Promise<void> {
    for (const running of this.#active.keys()) running.drain();
    await Promise.allSettled(this.#active.values());
  }

  async #track<T>(runId: string, go: (running: Running) => Promise<T>): Promise<T> {
    const running = new Running();
    const drain = (): void => running.drain();
    if (this.#draining?.aborted) drain();
    this.#draining?.addEventListener("abort", drain);
    const going = this.#claimed(runId, () => go(running));
    this.#active.set(running, going);
    try {
      return await going;
    } finally {
      this.#active.delete(running);
      this.#draining?.removeEventListener("abort", drain);
    }
  }

  /** Holds the run's claim meanwhile, if it is free, so that a recovery elsewhere leaves the run alone. */
  async #claimed<T>(runId: string, go: () => Promise<T>): Promise<T> {
    const claim = await claimOf(await this.#checkpoints.storeIfAny(), runId);
    try {
      return await go();
    } finally {
      // A claim that stays behind ends with this process.
      await claim?.release().catch(() => {});
    }
  }

  async #start(state: State<D>, { signal, gate }: RunOptions, running: Running): Promise<State<D>> {
    const { identity } = this.#checkpoints;
    const first = restarted(state, identity, this.#settings.ledger);
    const store = await this.#checkpoints.storeIfAny();
    const saver = store && new Saver<D>(store, this.#settings, state.runId);
    return this.#go(first, false, signal, running, { after: undefined, saver, gate });
  }

  async #goOn(
    loaded: State<D>,
    options: RunOptions,
    running: Running,
    wasAtBreakpoint = loaded.reason === BREAKPOINT,
  ): Promise<State<D>> {
    const after = this.#checkpoints.nodeAfter(loaded);
    const { unfinished: middle, status, runId } = loaded;
    const { input, signal, gate } = options;
    const isPaused = status === "paused";
    if (!isPaused && input !== undefined) {
      const problem = `was given, but run ${show(runId)} is not paused: it is ${status}`;
      throw new ConfigError("input", problem);
    }
    const isDone = after?.exit === true && !isPaused && middle === undefined;
    if (isDone && !goesOn.has(loaded.reason)) {
      return State.progressed(loaded, { status: "completed", error: undefined });
    }
    const unfinished = this.#unfinished(loaded);
    const saver = await this.#saver(loaded);
    const { checkpointId, sequence } = loaded;
    // A run that is set back is not what the store has, also when it is stopped before its first save.
    const from = isNewest(options) ? loaded : loaded.savedAs({ checkpointId, sequence });
    const state = isPaused ? await this.#answer(from, input, saver) : from;
    const stoppedBefore = state.reason === BREAKPOINT || wasAtBreakpoint;
    const skipBreakpoint = stoppedBefore || unfinished !== undefined;
    return this.#go(state, true, signal, running, {
      after,
      unfinished,
      skipBreakpoint,
      saver,
      gate,
    });
  }

  /** The node that a run was in the middle of. */
  #unfinished({ unfinished, runId }: State<D>): GraphNode<D> | undefined {
    return unfinished && this.#topology.node(unfinished.node, `run ${show(runId)}`);
  }

  /** Takes a paused run's input, and saves it before anything is done with it. */
  async #answer(state: State<D>, input: unknown, saver: Saver<D>): Promise<State<D>> {
    const node = state.unfinished?.node ?? state.checkpointNode;
    const next = await answered(state, input, this.#inputs.get(node));
    const stopped = state.pauses.some(({ breakpoint }) => breakpoint === "before");
    const reason = stopped ? BREAKPOINT : input === undefined ? "resume" : "input";
    return this.#save(State.progressed(next, { status: "in_progress", reason }), saver);
  }

  async #saver(latest: State<D>): Promise<Saver<D>> {
    return new Saver<D>(await this.#checkpoints.store(), this.#settings, latest.runId, latest);
  }

  async #save(state: State<D>, saver: Saver<D>): Promise<State<D>> {
    try {
      return await saver.save(state, true);
    } catch (error) {
      throw outsideRun(error);
    }
  }

  async #go(
    state: State<D>,
    resumed: boolean,
    signal: AbortSignal | undefined,
    running: Running,
    plan: Omit<Plan<D>, "settings" | "nodes" | "entry">,
  ): Promise<State<D>> {
    const { nodes } = this.#topology;
    const entry = this.#topology.validate();
    this.#checkBreakpoints(plan.saver !== undefined);
    const run = new Run({ settings: this.#settings, nodes, entry, ...plan }, state);
    running.attach(run);
    return run.go(state, resumed, signal);
  }

  /** A misspelt node would never be stopped at, and a run that is not saved could not go on. */
  #checkBreakpoints(saves: boolean): void {
    const { breakpoints = {} } = this.#settings;
    const named = Object.entries(breakpoints as Readonly<Record<string, readonly string[]>>);
    for (const [where, nodes] of named) {
      for (const node of nodes) this.#topology.node(node, `config.breakpoints.${where}`);
      if (nodes.length === 0 || saves) continue;
      const problem =
        "needs checkpoints to go on from: set config.checkpoint.interval to 1 or more";
      throw new ConfigError(`config.breakpoints.${where}`, problem);
    }
  }
}

/** The reason of a checkpoint at which a run went on from a breakpoint before a node. */
const BREAKPOINT = "breakpoint";

/** The reasons of checkpoints at which a run went on, and from which it has still to come to an end. */
const goesOn: ReadonlySet<string> = new Set(["input", "resume", "recovery", BREAKPOINT]);

async function claimOf(
  store: CheckpointStore | undefined,
  runId: string,
): Promise<Claim | undefined> {
  try {
    return await store?.claim?.(runId);
  } catch {
    // Whether a run may go on is decided by its saves.
    return undefined;
  }
}
