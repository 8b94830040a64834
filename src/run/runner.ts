import { callers } from "../call-scope.js";
import { forked, rolledBack } from "../checkpoint/fork.js";
import { type CheckpointAt, type Claim, isNewest, type Retention } from "../checkpoint/store.js";
import { abortWith, defer, Mutex } from "../concurrency.js";
import { ConfigError, isWaymarkError, show } from "../errors.js";
import type { Audit } from "../event-map.js";
import { checkRunId, string } from "../options.js";
import { progressOf, withProgress } from "../state/derive.js";
import type { Recovery } from "../state/record.js";
import { validated } from "../state/schema.js";
import { type Patch, State } from "../state/state.js";
import type { Settings } from "./config.js";
import type { Gate, ValuesListener } from "./handles/stream.js";
import { borrowed, RunControl } from "./loop/control.js";
import { outsideRun } from "./loop/failure.js";
import { type Plan, RunSession } from "./loop/loop.js";
import { toAnswer, withAnswer } from "./pauses/pauses.js";
import {
  type AttemptEnd,
  attemptEnded,
  continued,
  givenUp,
  isPastBreakpoint,
  type Recovering,
  type RecoveryPolicy,
  recovering,
  waiting,
} from "./position/continuation.js";
import type { SavedGraph } from "./saved-graph.js";
import { Saver } from "./saving/saver.js";

/** How a run is started or resumed. */
export interface RunOptions<D extends object> extends CheckpointAt {
  readonly onValues?: ValuesListener<D> | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly input?: unknown;
  /** Makes the run wait for a slow reader of its events. */
  readonly gate?: Gate | undefined;
}

/** An attempt to continue a run that its process left behind. */
export interface RecoveryAttempt<D extends object>
  extends Pick<Recovering, "count" | "isLast" | "leftAlone"> {
  /** Whether the run goes back one step. */
  readonly fellBack: boolean;
  /** The run as it was found. */
  readonly newest: State<D>;
  /** Where the run ends or pauses; as it was found if it is left alone. */
  readonly result: Promise<State<D>>;
  /** Saves how the attempt ended, if it did not get the run to its end; an attempt that can't be saved counts. */
  end(how: AttemptEnd): Promise<void>;
}

/** Works on the runs of a graph in this process. */
export class Runner<D extends object> {
  readonly #graph: SavedGraph<D>;
  readonly #draining: AbortSignal | undefined;
  readonly #active: Set<RunSession<D>>;
  /** Writes answers to the store one at a time. */
  readonly #answers = new Mutex();

  /** @param draining - also drains the runs; the signal of the node that contains them. */
  constructor(graph: SavedGraph<D>, draining?: AbortSignal, active = new Set<RunSession<D>>()) {
    this.#active = active;
    this.#graph = graph;
    this.#draining = draining;
  }

  /** The same runner for one audited call: its checkpoint events name who made it. */
  for(audit: Audit | undefined): Runner<D> {
    return audit === undefined ? this : this.#with({ audit: Object.freeze({ ...audit }) });
  }

  /** The same runner for a caller that holds the run already. */
  under(claim: Claim | undefined): Runner<D> {
    return claim === undefined ? this : this.#with({ claim: async () => borrowed(claim) });
  }

  #with(settings: Partial<Settings>): Runner<D> {
    return new Runner(this.#graph.with(settings), this.#draining, this.#active);
  }

  /** Starts a State's run, or resumes the run with an id. */
  run(run: State<D> | string, options: RunOptions<D>): RunSession<D> {
    if (run instanceof State)
      return this.#track(run.runId, (session) => this.#start(run, options, session));
    const { step, checkpointId } = options;
    return this.#track(checkRunId(run), async (session) => {
      const loaded = await this.#graph.load(run, { step, checkpointId });
      return this.#resume(loaded, options, session);
    });
  }

  resumeOrStart(state: State<D>, options: RunOptions<D>): RunSession<D> {
    return this.#track(state.runId, async (session) => {
      const loaded = await this.#newestIfAny(state.runId);
      return loaded === undefined
        ? this.#start(state, options, session)
        : this.#resume(loaded, options, session);
    });
  }

  /**
   * Continues a run that its process left behind, unless it needs no recovery or its attempts are used up.
   *
   * @returns the attempt as soon as it is known.
   */
  recover(
    runId: string,
    policy: RecoveryPolicy,
    options: RunOptions<D>,
  ): Promise<RecoveryAttempt<D>> {
    const { promise, resolve, reject } = defer<RecoveryAttempt<D>>();
    const { result } = this.#track(runId, async (session) => {
      const newest = await this.#graph.load(runId);
      this.#graph.position(newest);
      const found = recovering(newest, policy);
      const { count, recovery, leftAlone, fallsBack } = found;
      const previous = fallsBack ? await this.#graph.previous(newest) : undefined;
      const end = (how: AttemptEnd): Promise<void> =>
        this.#change(runId, (state) => attemptEnded(state, count, how)).then(ignored, ignored);
      resolve({ ...found, fellBack: previous !== undefined, newest, result, end });
      if (recovery !== undefined)
        return this.#continue(newest, previous ?? newest, options, session, recovery);
      return leftAlone === undefined ? this.#saveChange(newest, givenUp, session) : newest;
    });
    result.catch(reject);
    return promise;
  }

  /** The newest session with a run in this process. */
  session(runId: string): RunSession<D> | undefined {
    return [...this.#active].findLast((session) => session.runId === runId);
  }

  /**
   * Keeps an answer for a pause of a run, whether it has been reached or not. It is saved when the promise resolves.
   *
   * @throws ConfigError if an argument is invalid, the run has completed, or it has too many unused answers.
   * @throws PauseTimeoutError if the pause has timed out.
   * @throws CheckpointConflictError if another process works on the run.
   */
  async answer(runId: string, name: string, value: unknown): Promise<void> {
    checkRunId(runId);
    string("name", name);
    const answer = toAnswer(name, value);
    const running = this.session(runId);
    if (running !== undefined) {
      if (await running.answer(answer)) return;
      await running.result.catch(() => {});
    }
    await this.#answers.run(() => this.#change(runId, (state) => withAnswer(state, answer)));
  }

  async fork(runId: string, at: CheckpointAt, changes: Patch<D>): Promise<State<D>> {
    const graph = this.#graph;
    const source = await graph.read(runId, at);
    graph.position(withProgress(source, { reason: "fork" }));
    const next = forked(source, changes, graph.identity);
    const { schema } = graph.settings;
    if (schema !== undefined) await validated("data", next.data, schema);
    const wait = (state: State<D>) => waiting(state, "fork", graph);
    return this.#saveChange(next, wait, new RunControl(next.runId));
  }

  async rollback(runId: string, at: CheckpointAt): Promise<State<D>> {
    checkRunId(runId);
    const change = (state: State<D>) => waiting(rolledBack(state), "rollback", this.#graph);
    return this.#change(runId, change, at, true);
  }

  async delete(runId: string): Promise<void> {
    const store = await this.#graph.store();
    await this.#claimed(new RunControl(runId), () => store.delete(runId), true);
    this.#removed(runId);
  }

  async prune(retention: Retention): Promise<string[]> {
    const store = await this.#graph.store();
    if (store.prune === undefined) throw new ConfigError("store", "has no prune");
    const runIds = await store.prune(retention);
    if (retention.dryRun !== true) for (const runId of runIds) this.#removed(runId);
    return runIds;
  }

  #removed(runId: string): void {
    const { audit } = this.#graph.settings;
    this.#graph.emit("checkpoint.delete", runId, { node: "", step: 0, ...audit });
  }

  /** Changes and saves a run that nobody works on. */
  async #change(
    runId: string,
    change: (state: State<D>) => State<D> | undefined,
    at?: CheckpointAt,
    must?: boolean,
  ): Promise<State<D>> {
    const control = new RunControl(runId);
    const work = async () => this.#saveChange(await this.#graph.load(runId, at), change, control);
    return this.#claimed(control, work, must);
  }

  /** Saves what a change makes of a State; without a change it stays as it is. */
  async #saveChange(
    state: State<D>,
    change: (state: State<D>) => State<D> | undefined,
    control: RunControl,
  ): Promise<State<D>> {
    const next = change(state);
    return next === undefined ? state : this.#save(next, await this.#saver(next, control));
  }

  /**
   * Lets running nodes finish, and waits until all runs have stopped.
   *
   * @throws ConfigError if called from a node of one of them, which would wait for itself.
   */
  drain(): Promise<void> {
    const active = [...this.#active];
    for (const session of active) session.drain();
    const around = active.length > 0 ? callers() : [];
    const problem =
      "must not be awaited inside a node of a run that it stops: call it without await, or outside the graph";
    const stopped = active.some(({ scope }) => around.includes(scope.name))
      ? Promise.reject(new ConfigError("drain", problem))
      : Promise.allSettled(active.map(({ result }) => result)).then(() => {});
    // A node may drain its graph, as long as it does not await that.
    stopped.catch(() => {});
    return stopped;
  }

  #track(runId: string, work: (session: RunSession<D>) => Promise<State<D>>): RunSession<D> {
    const session = new RunSession<D>(runId, async (own) => {
      const ignore = abortWith({ abort: () => own.drain() }, this.#draining);
      try {
        return await this.#claimed(own, () => work(own));
      } finally {
        this.#active.delete(own);
        ignore();
      }
    });
    this.#active.add(session);
    return session;
  }

  /**
   * Claims the run while the work lasts.
   *
   * @param must - whether a failed claim is an error, whatever the config says.
   * @throws CheckpointConflictError, naming the holder, before anything is done.
   */
  async #claimed<T>(control: RunControl, work: () => Promise<T>, must = false): Promise<T> {
    return control.under(await this.#claim(control.runId, must), work);
  }

  /** A failed claim stops a run just as a failed save does. */
  async #claim(runId: string, must: boolean): Promise<Claim | undefined> {
    const { claim, onSaveError } = this.#graph.settings;
    try {
      return await claim(await this.#graph.storeIfAny(), runId);
    } catch (error) {
      const isConflict = isWaymarkError(error, "CHECKPOINT_CONFLICT");
      if (isConflict || must || onSaveError !== "continue") throw error;
      this.#graph.saveFailed(runId, error);
      return undefined;
    }
  }

  async #start(state: State<D>, options: RunOptions<D>, session: RunSession<D>): Promise<State<D>> {
    const first = await this.#graph.first(state);
    await this.#graph.describe(state.runId);
    const saver = this.#graph.settings.store && (await this.#saver(first, session));
    return this.#walk(first, options, session, { after: undefined, isResumed: false, saver });
  }

  /** The newest State of a run; `undefined` if it has to be started. */
  async #newestIfAny(runId: string): Promise<State<D> | undefined> {
    try {
      return await this.#graph.load(runId);
    } catch (error) {
      if (isWaymarkError(error, "CHECKPOINT_CORRUPT")) {
        const message = `the run starts over: ${error.message}`;
        const data = { kind: "fresh-start", node: "", message } as const;
        this.#graph.emit("checkpoint.warning", runId, data);
      } else if (!isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) {
        throw error;
      }
      return undefined;
    }
  }

  /** Continues a run, unless it has ended. */
  async #resume(
    loaded: State<D>,
    options: RunOptions<D>,
    session: RunSession<D>,
  ): Promise<State<D>> {
    const isDone = loaded.status === "completed" && progressOf(loaded).unfinished === undefined;
    if (!isDone) return this.#continue(loaded, loaded, options, session);
    checkWanted(loaded, options.input);
    return withProgress(loaded, { error: undefined, nextNode: undefined });
  }

  /** @param recovery - set if this is an attempt to recover the run. */
  async #continue(
    newest: State<D>,
    from: State<D>,
    options: RunOptions<D>,
    session: RunSession<D>,
    recovery?: Recovery,
  ): Promise<State<D>> {
    const { input } = options;
    const graph = this.#graph;
    const position = graph.position(from);
    if (position.state.status !== "paused") checkWanted(position.state, input);
    await graph.describe(newest.runId);
    const run = { newest, from, position, setsBack: !isNewest(options), recovery, input };
    const { state: first, save, error } = await continued(run, graph);
    const saver = await this.#saver(first, session, newest);
    const state = save === "never" ? first : await this.#save(first, saver, save === "always");
    if (error !== undefined) throw error;
    return this.#walk(state, options, session, {
      after: position.after,
      unfinished: position.next,
      isResumed: true,
      skipBreakpoint: isPastBreakpoint(run, state),
      saver,
    });
  }

  async #walk(
    state: State<D>,
    { signal, gate, onValues, input }: RunOptions<D>,
    session: RunSession<D>,
    from: Omit<Plan<D>, "settings" | "entry" | "signal" | "onValues">,
  ): Promise<State<D>> {
    const { settings, topology } = this.#graph;
    this.#checkBreakpoints(from.saver !== undefined);
    session.waitFor(gate);
    const entry = topology.validate();
    const plan = { settings, entry, signal, onValues, ...from };
    const last = await session.walk(state, plan);
    // The caller that gave a refused answer must learn why.
    const refusal = session.loop?.refusal;
    if (input !== undefined && refusal !== undefined) throw refusal;
    return last;
  }

  /** A run would never stop at a misspelt node, and an unsaved run could not continue. */
  #checkBreakpoints(saves: boolean): void {
    const { settings, topology } = this.#graph;
    const { breakpoints = {} } = settings;
    const named = Object.entries(breakpoints as Readonly<Record<string, readonly string[]>>);
    for (const [where, nodes] of named) {
      for (const node of nodes) topology.node(node, `config.breakpoints.${where}`);
      if (nodes.length === 0 || saves) continue;
      const problem =
        "needs checkpoints to continue from: set config.checkpoint.interval to 1 or more";
      throw new ConfigError(`config.breakpoints.${where}`, problem);
    }
  }

  /** @param latest - what the store has of a run that walks on. */
  async #saver(from: State<D>, control: RunControl, latest?: State<D>): Promise<Saver<D>> {
    const store = await this.#graph.store();
    return new Saver<D>(store, this.#graph.settings, from, control, latest);
  }

  /** @param must - whether a failed save is an error, whatever the config says. */
  async #save(state: State<D>, saver: Saver<D>, must = true): Promise<State<D>> {
    try {
      return await saver.save(state, must);
    } catch (error) {
      throw outsideRun(error);
    }
  }
}

const ignored = (): void => {};

/** Throws if input is given to a run that is not paused. */
function checkWanted<D extends object>({ runId, status }: State<D>, input: unknown): void {
  if (input === undefined) return;
  const problem = `was given, but run ${show(runId)} is not paused: it is ${status}`;
  throw new ConfigError("input", problem);
}
