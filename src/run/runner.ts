import type { Audit } from "../audit.js";
import { CallScope } from "../call-scope.js";
import { rolledBack, waitsForResume } from "../checkpoint/fork.js";
import { type CheckpointAt, type Claim, isNewest } from "../checkpoint/store.js";
import { defer, Mutex } from "../concurrency.js";
import {
  type CheckpointConflictError,
  ConfigError,
  isWaymarkError,
  messageOf,
  show,
} from "../errors.js";
import type { Topology } from "../graph/topology.js";
import { progressOf, withProgress, withRecord } from "../state/derive.js";
import { freezeCopy } from "../state/freeze-copy.js";
import { checkData } from "../state/input.js";
import { traitsOf } from "../state/json-traits.js";
import { mergedMetadata } from "../state/metadata.js";
import type { Signal } from "../state/record.js";
import { validated } from "../state/schema.js";
import { recordOf, type State } from "../state/state.js";
import { Checkpoints } from "./checkpoints.js";
import { borrowed, RunClaim } from "./claim.js";
import type { Settings } from "./config.js";
import { hasCrashed, withCrash } from "./crash.js";
import { outsideRun } from "./failure.js";
import { answered, type InputSchemas, refusedSignals } from "./pauses.js";
import { restarted } from "./restart.js";
import { type Plan, Run, type ValuesListener } from "./run.js";
import { Saver } from "./saver.js";
import { withSignal } from "./signals.js";
import type { Standing } from "./standing.js";
import type { Gate } from "./stream.js";

/** How a run is started or resumed. */
export interface RunOptions<D extends object> extends CheckpointAt {
  readonly onValues?: ValuesListener<D> | undefined;
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
export class Running<D extends object> {
  readonly runId: string;
  /** Resolves when the run has stopped, however it did. */
  readonly stopped: Promise<void>;
  /** What its nodes are called in. */
  readonly scope = new CallScope();
  readonly #begun = defer();
  readonly #stop: () => void;
  #run: Run<D> | undefined;
  #cancelled: { readonly reason: unknown } | undefined;
  #drains = false;
  #lost: CheckpointConflictError | undefined;
  /** What the run is worked on under; `undefined` where runs can't be claimed. */
  claim: RunClaim | undefined;

  constructor(runId: string) {
    this.runId = runId;
    const { promise, resolve } = defer();
    this.stopped = promise;
    this.#stop = resolve;
  }

  /** The State that the running node was given; `undefined` before the run has begun. */
  get state(): State<D> | undefined {
    return this.#run?.state;
  }

  /** Notes the claim under which the run is worked on. */
  hold(claim: Claim): void {
    this.claim = new RunClaim(this.runId, claim, (error) => {
      this.#lost = error;
      this.#run?.lose(error);
    });
  }

  attach(run: Run<D>): void {
    this.#run = run;
    this.#begun.resolve();
    if (this.#drains) run.drain();
    if (this.#cancelled !== undefined) run.cancel(this.#cancelled.reason);
    if (this.#lost !== undefined) run.lose(this.#lost);
  }

  drain(): void {
    this.#drains = true;
    this.#run?.drain();
  }

  /** Stops the run so that it can be resumed. */
  cancel(reason: unknown): void {
    this.#cancelled ??= { reason };
    this.#run?.cancel(reason);
  }

  /** Notes that the run has stopped. */
  end(): void {
    this.#stop();
  }

  /** Keeps an answer for a pause to come; `false` if the run stopped before it could be kept. */
  async signal(signal: Signal): Promise<boolean> {
    await Promise.race([this.#begun.promise, this.stopped]);
    return this.#run?.signal(signal) ?? false;
  }
}

/** Starts the runs of a graph in this process, and goes on with them. */
export class Runner<D extends object> {
  readonly #settings: Settings;
  readonly #topology: Topology<D>;
  readonly #checkpoints: Checkpoints<D>;
  readonly #inputs: ReadonlyMap<string, InputSchemas>;
  readonly #draining: AbortSignal | undefined;
  readonly #active: Map<Running<D>, Promise<State<D> | undefined>>;
  /** One signal at a time is put into the store. */
  readonly #signals = new Mutex();

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
    active = new Map<Running<D>, Promise<State<D> | undefined>>(),
  ) {
    this.#active = active;
    this.#settings = settings;
    this.#topology = topology;
    this.#checkpoints = checkpoints;
    this.#inputs = inputs;
    this.#draining = draining;
  }

  /** The same, for one call by somebody: its checkpoint events say who. */
  for(audit: Audit | undefined): Runner<D> {
    if (audit === undefined) return this;
    const settings = { ...this.#settings, audit: Object.freeze({ ...audit }) };
    const checkpoints = new Checkpoints(settings, this.#topology);
    return new Runner(
      settings,
      this.#topology,
      checkpoints,
      this.#inputs,
      this.#draining,
      this.#active,
    );
  }

  start(state: State<D>, options: RunOptions<D>): Promise<State<D>> {
    return this.#track(state.runId, (running) => this.#start(state, options, running));
  }

  /** @param run - the run, or one of its checkpoints. */
  async resume(
    run: string | { readonly checkpointId: string },
    options: RunOptions<D>,
  ): Promise<State<D>> {
    if (typeof run === "object") {
      const { checkpointId } = run;
      return this.resume(await this.#checkpoints.runOf(checkpointId), { ...options, checkpointId });
    }
    const runId = run;
    const { step, checkpointId } = options;
    return this.#track(runId, async (running) => {
      const loaded = await this.#checkpoints.load(runId, { step, checkpointId });
      return this.#goOn(loaded, options, running);
    });
  }

  resumeOrStart(state: State<D>, options: RunOptions<D>): Promise<State<D>> {
    return this.#track(state.runId, async (running) => {
      const loaded = await this.#checkpoints.load(state.runId, {}).catch((error: unknown) => {
        if (isWaymarkError(error, "CHECKPOINT_CORRUPT")) {
          const message = `the run starts over: ${error.message}`;
          const data = { kind: "fresh-start", node: "", message } as const;
          this.#checkpoints.emit("checkpoint.warning", state.runId, data);
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

  /**
   * Goes on with a run from what `prepare` makes of it, which is saved first; `undefined` when it was left alone.
   *
   * @param claim - the claim of whoever recovers it.
   */
  recover(
    runId: string,
    options: RunOptions<D>,
    prepare: Prepare,
    claim?: Claim,
  ): Promise<State<D> | undefined> {
    const go = async (running: Running<D>): Promise<State<D> | undefined> => {
      const loaded = await this.#checkpoints.load(runId, {});
      this.#checkpoints.standing(loaded);
      const load = (checkpointId: string) => this.#checkpoints.load(runId, { checkpointId });
      const prepared = await prepare(loaded, load);
      if (prepared === undefined) return undefined;
      const { goOn } = prepared;
      const from = goOn ? this.#resumed(prepared.state) : prepared.state;
      const next = goOn && hasCrashed(loaded) ? withCrash(from, this.#entry) : from;
      const state = await this.#save(next, await this.#saver(loaded, running));
      return goOn ? this.#goOn(state, options, running, loaded) : state;
    };
    return this.#track(runId, go, claim);
  }

  /** The newest run under way in this process with this id. */
  running(runId: string): Running<D> | undefined {
    return [...this.#active.keys()].findLast((running) => running.runId === runId);
  }

  /** What a run under way comes to. */
  async resultOf(running: Running<D>): Promise<State<D>> {
    // A recovery that leaves the run alone gives nothing.
    return (await this.#active.get(running)) ?? this.#checkpoints.load(running.runId, {});
  }

  /**
   * Keeps an answer for a pause of a run, asked or not. It is saved when the promise resolves.
   *
   * @throws ConfigError if the run has completed, or keeps too many already.
   * @throws PauseTimeoutError if the time of the pause is up.
   * @throws CheckpointConflictError if another process works on the run.
   */
  async signal(runId: string, signal: Signal): Promise<void> {
    const running = this.running(runId);
    if (running !== undefined) {
      if (await running.signal(signal)) return;
      await running.stopped;
    }
    const keep = (claimed: Running<D>): Promise<void> => this.#keepSignal(runId, signal, claimed);
    const claimed = new Running<D>(runId);
    await this.#signals.run(() => this.#claimed(runId, claimed, keep));
  }

  async #keepSignal(runId: string, signal: Signal, claimed: Running<D>): Promise<void> {
    const state = await this.#checkpoints.load(runId, {});
    const next = withSignal(state, signal);
    await this.#save(next, await this.#saver(state, claimed));
  }

  /**
   * Lets running nodes finish, and waits until all runs have stopped.
   *
   * @throws ConfigError in a node of one of them, which would wait for itself.
   */
  drain(): Promise<void> {
    const active = [...this.#active.keys()];
    for (const running of active) running.drain();
    const stopped = active.some(({ scope }) => scope.isInside)
      ? Promise.reject(drainsItself())
      : Promise.allSettled(this.#active.values()).then(() => {});
    // A node may drain its graph, as long as it does not wait for that.
    stopped.catch(() => {});
    return stopped;
  }

  async #track<T extends State<D> | undefined>(
    runId: string,
    go: (running: Running<D>) => Promise<T>,
    claim?: Claim,
  ): Promise<T> {
    const running = new Running<D>(runId);
    const drain = (): void => running.drain();
    if (this.#draining?.aborted) drain();
    this.#draining?.addEventListener("abort", drain);
    const going = this.#claimed(runId, running, go, claim);
    this.#active.set(running, going);
    try {
      return await going;
    } finally {
      this.#active.delete(running);
      running.end();
      this.#draining?.removeEventListener("abort", drain);
    }
  }

  /**
   * Claims the run for as long as it is worked on.
   *
   * @throws CheckpointConflictError that names who has it, before anything is done.
   */
  async #claimed<T>(
    runId: string,
    running: Running<D>,
    go: (running: Running<D>) => Promise<T>,
    given?: Claim,
  ): Promise<T> {
    const claim = given ? borrowed(given) : await this.#claim(runId);
    if (claim !== undefined) running.hold(claim);
    try {
      return await go(running);
    } finally {
      // A claim that stays behind ends with this process.
      await claim?.release().catch(() => {});
    }
  }

  /** A store that can't be claimed in stops a run as one that can't be saved in does. */
  async #claim(runId: string): Promise<Claim | undefined> {
    const { claim, onSaveError } = this.#settings;
    try {
      return await claim(await this.#checkpoints.storeIfAny(), runId);
    } catch (error) {
      const isConflict = isWaymarkError(error, "CHECKPOINT_CONFLICT");
      if (isConflict || onSaveError !== "continue") throw error;
      const data = { action: "save", node: "", error: messageOf(error) } as const;
      this.#checkpoints.emit("checkpoint.error", runId, data);
      return undefined;
    }
  }

  async #start(state: State<D>, options: RunOptions<D>, running: Running<D>): Promise<State<D>> {
    const { identity } = this.#checkpoints;
    const first = await this.#checked(restarted(state, identity, this.#settings));
    const store = await this.#checkpoints.storeIfAny();
    const { claim } = running;
    if (store !== undefined) await this.#checkpoints.describe(store, state.runId);
    const saver = store && new Saver<D>(store, this.#settings, first, { claim });
    return this.#go(first, false, options, running, { after: undefined, saver });
  }

  /** @param noted - the State that it was when its crash was noted, if that was done before. */
  async #goOn(
    loaded: State<D>,
    options: RunOptions<D>,
    running: Running<D>,
    noted?: State<D>,
  ): Promise<State<D>> {
    const { runId } = loaded;
    const { input } = options;
    const isDone = loaded.status === "completed" && progressOf(loaded).unfinished === undefined;
    const {
      state: stands,
      after,
      next,
    } = isDone ? atEnd(loaded) : this.#checkpoints.standing(loaded);
    const { status } = stands;
    const isPaused = status === "paused";
    if (!isPaused && input !== undefined) {
      const problem = `was given, but run ${show(runId)} is not paused: it is ${status}`;
      throw new ConfigError("input", problem);
    }
    if (isDone) return withProgress(loaded, { error: undefined, nextNode: undefined });
    await this.#checkpoints.describe(await this.#checkpoints.store(), runId);
    const { checkpointId, sequence, savedAt } = loaded;
    // A run that is set back is not what the store has, also when it is stopped before its first save.
    const here = noted === undefined ? this.#resumed(stands) : stands;
    const from = !isNewest(options)
      ? rolledBack(here.savedAs({ checkpointId, sequence, savedAt }))
      : noted === undefined && hasCrashed(loaded)
        ? withCrash(here, this.#entry)
        : here;
    const saver = await this.#saver(loaded, running, from);
    const hasBegun =
      progressOf(stands).unfinished !== undefined || hasFailedAt(loaded, loaded.nextNode);
    const isPastBreakpoint = hasBegun || (noted ?? loaded).reason === BREAKPOINT;
    // A failure stays in the history: the next save is of what became of the node this time.
    const hasStarted = status === "in_progress" || waitsForResume(loaded);
    const isUnnoted = hasStarted && isNewest(options) && noted === undefined;
    const state = isPaused
      ? await this.#answer(from, input, saver)
      : isUnnoted && this.#settings.mode !== "exit"
        ? await this.#noteResume(from, isPastBreakpoint, saver)
        : from;
    const skipBreakpoint = state.reason === BREAKPOINT || isPastBreakpoint;
    return this.#go(state, true, options, running, {
      after,
      unfinished: next,
      skipBreakpoint,
      saver,
    });
  }

  /** A new run's State, its data as the schema gives it. */
  async #checked(state: State<D>): Promise<State<D>> {
    const { schema } = this.#settings;
    if (schema === undefined) return state;
    const data = await validated("data", state.data, schema);
    return data === state.data ? state : replacedData(state, data);
  }

  /** A State whose resume is counted, with the metadata of this graph, which works on the run from here on. */
  #resumed(state: State<D>): State<D> {
    const { identity, progress } = recordOf(state);
    return withRecord(state, {
      identity: { ...identity, ...mergedMetadata(identity, this.#settings.metadata) },
      progress: { ...progress, resumes: progress.resumes + 1 },
    });
  }

  get #entry(): string {
    return this.#topology.entry?.name ?? "";
  }

  /** Saves that a run is resumed: its process may die before the next save, and is then to be missed. */
  #noteResume(state: State<D>, isPastBreakpoint: boolean, saver: Saver<D>): Promise<State<D>> {
    const reason = isPastBreakpoint ? BREAKPOINT : "resume";
    return this.#save(withProgress(state, { status: "in_progress", reason }), saver, false);
  }

  /** Takes a paused run's input, and saves it before anything is done with it. */
  async #answer(state: State<D>, input: unknown, saver: Saver<D>): Promise<State<D>> {
    const node = progressOf(state).unfinished?.node ?? state.checkpointNode;
    const schemas = this.#inputs.get(node);
    const refused = input === undefined ? await refusedSignals(state, schemas) : undefined;
    if (refused !== undefined) {
      await this.#save(refused.state, saver);
      throw refused.error;
    }
    const next = await answered(state, input, schemas);
    const stopped = state.pauses.some(({ breakpoint }) => breakpoint === "before");
    const reason = stopped ? BREAKPOINT : input === undefined ? "resume" : "input";
    const goingOn = withProgress(next, { status: "in_progress", reason });
    // What was put in may lead another way.
    const nextNode = this.#checkpoints.nextNode(goingOn);
    return this.#save(withProgress(goingOn, { nextNode }), saver);
  }

  async #saver(latest: State<D>, { claim }: Running<D>, from = latest): Promise<Saver<D>> {
    const store = await this.#checkpoints.store();
    return new Saver<D>(store, this.#settings, from, { latest, claim });
  }

  /** @param must - whether a save that fails is an error, whatever the config says. */
  async #save(state: State<D>, saver: Saver<D>, must = true): Promise<State<D>> {
    try {
      return await saver.save(state, must);
    } catch (error) {
      throw outsideRun(error);
    }
  }

  async #go(
    state: State<D>,
    resumed: boolean,
    { signal, gate, onValues, input }: RunOptions<D>,
    running: Running<D>,
    given: Omit<Plan<D>, "settings" | "nodes" | "entry">,
  ): Promise<State<D>> {
    const { nodes } = this.#topology;
    const entry = this.#topology.validate();
    this.#checkBreakpoints(given.saver !== undefined);
    const { claim } = running;
    const plan = { settings: this.#settings, nodes, entry, claim, gate, onValues, ...given };
    const run = new Run(plan, state);
    running.attach(run);
    const last = await running.scope.run(() => run.go(state, resumed, signal));
    // Who gave an answer must hear that it is asked for again.
    if (input !== undefined && run.refusal !== undefined) throw run.refusal;
    return last;
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

/** Whether a node has begun and failed. */
function hasFailedAt<D extends object>({ error }: State<D>, node: string | undefined): boolean {
  return error !== undefined && error.node === node;
}

/** Where a run stands that has ended, whatever became of its last node. */
function atEnd<D extends object>(state: State<D>): Standing<D> {
  return { state, after: undefined, next: undefined };
}

function drainsItself(): ConfigError {
  const problem =
    "must not be awaited inside a node of a run that it stops: call it without await, or outside the graph";
  return new ConfigError("drain", problem);
}

/** A State with other data. */
function replacedData<D extends object>(state: State<D>, data: unknown): State<D> {
  checkData(data);
  const kept: object = freezeCopy(data);
  return withRecord(state, { data: kept, traits: traitsOf(kept) });
}
