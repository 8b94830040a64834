import { callers } from "../call-scope.js";
import { type CheckpointAt, type Claim, isNewest } from "../checkpoint/store.js";
import { isoNow } from "../clock.js";
import { Mutex, onAbort } from "../concurrency.js";
import { ConfigError, isWaymarkError, messageOf, show } from "../errors.js";
import type { Audit } from "../event-map.js";
import { checkRunId, string } from "../options.js";
import { progressOf, withProgress, withRecord } from "../state/derive.js";
import { newProgress, unsaved } from "../state/fields.js";
import { freezeCopy } from "../state/freeze-copy.js";
import { traitsOf } from "../state/json-traits.js";
import { mergedMetadata } from "../state/metadata.js";
import type { Recovery } from "../state/record.js";
import { validated } from "../state/schema.js";
import { checkData, recordOf, type State } from "../state/state.js";
import { Checkpoints } from "./checkpoints.js";
import type { Gate, ValuesListener } from "./handles/stream.js";
import { outsideRun } from "./loop/failure.js";
import type { Plan } from "./loop/loop.js";
import { RunSession } from "./loop/session.js";
import { toAnswer, withAnswer } from "./pauses/answers.js";
import {
  type Continuation,
  isPastBreakpoint,
  noteOf,
  resumed,
  withInput,
} from "./position/continuation.js";
import {
  type AttemptEnd,
  attemptEnded,
  givenUp,
  type Recovering,
  type RecoveryPolicy,
  recovering,
} from "./position/recovery.js";
import type { SavedGraph } from "./saved-graph.js";
import { borrowed } from "./saving/claim.js";
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
  /** Where the run ends or pauses; `undefined` if it does not continue. */
  readonly result: Promise<State<D> | undefined>;
}

/** Starts and continues the runs of a graph in this process. */
export class Runner<D extends object> {
  readonly #graph: SavedGraph<D>;
  readonly #checkpoints: Checkpoints<D>;
  readonly #draining: AbortSignal | undefined;
  readonly #active: Map<RunSession<D>, Promise<State<D> | undefined>>;
  /** Writes answers to the store one at a time. */
  readonly #answers = new Mutex();

  /** @param draining - also drains the runs; the signal of the node that contains them. */
  constructor(
    graph: SavedGraph<D>,
    draining?: AbortSignal,
    active = new Map<RunSession<D>, Promise<State<D> | undefined>>(),
  ) {
    this.#active = active;
    this.#graph = graph;
    this.#checkpoints = new Checkpoints(graph);
    this.#draining = draining;
  }

  /** The same runner for one audited call: its checkpoint events name who made it. */
  for(audit: Audit | undefined): Runner<D> {
    if (audit === undefined) return this;
    const graph = this.#graph.with({ audit: Object.freeze({ ...audit }) });
    return new Runner(graph, this.#draining, this.#active);
  }

  start(state: State<D>, options: RunOptions<D>): Promise<State<D>> {
    return this.#track(state.runId, (session) => this.#start(state, options, session));
  }

  /** @param run - the run, or one of its checkpoints. */
  async resume(
    run: string | { readonly checkpointId: string },
    options: RunOptions<D>,
  ): Promise<State<D>> {
    if (typeof run === "object") {
      const { checkpointId } = run;
      const runId = await this.#checkpoints.runOf(checkpointId);
      return this.resume(runId, { ...options, checkpointId });
    }
    const { step, checkpointId } = options;
    return this.#track(run, async (session) => {
      const loaded = await this.#checkpoints.load(run, { step, checkpointId });
      return this.#resume(loaded, options, session);
    });
  }

  resumeOrStart(state: State<D>, options: RunOptions<D>): Promise<State<D>> {
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
   * @param claim - the claim of the recovering process.
   * @returns the attempt as soon as it is known.
   */
  recover(
    runId: string,
    policy: RecoveryPolicy,
    options: RunOptions<D>,
    claim?: Claim,
  ): Promise<RecoveryAttempt<D>> {
    return new Promise((resolve, reject) => {
      const result = this.#track(
        runId,
        async (session) => {
          const newest = await this.#checkpoints.load(runId, {});
          this.#graph.position(newest);
          const found = recovering(newest, policy);
          const { recovery, leftAlone, fallsBack } = found;
          const previous = fallsBack ? await this.#checkpoints.previous(newest) : undefined;
          resolve({ ...found, fellBack: previous !== undefined, newest, result });
          if (recovery !== undefined)
            return this.#continue(newest, previous ?? newest, options, session, recovery);
          const last = leftAlone === undefined ? givenUp(newest) : undefined;
          return last && this.#save(last, await this.#saver(newest, session));
        },
        claim,
      );
      result.catch(reject);
    });
  }

  /** Saves how an attempt to recover a run has ended, if it did not get the run to its end. */
  async endAttempt(runId: string, attempt: number, end: AttemptEnd, claim?: Claim): Promise<void> {
    await this.#track(
      runId,
      async (session) => {
        const newest = await this.#checkpoints.load(runId, {});
        const next = attemptEnded(newest, attempt, end);
        return next && this.#save(next, await this.#saver(newest, session));
      },
      claim,
    );
  }

  /** The newest session with a run in this process. */
  session(runId: string): RunSession<D> | undefined {
    return [...this.#active.keys()].findLast((session) => session.runId === runId);
  }

  /** The result of a run in progress. */
  async resultOf(session: RunSession<D>): Promise<State<D>> {
    // A recovery that leaves the run as it is has no result.
    return (await this.#active.get(session)) ?? this.#checkpoints.load(session.runId, {});
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
      await running.stopped;
    }
    const session = new RunSession<D>(runId);
    await this.#answers.run(() =>
      this.#claimed(session, async () => {
        const state = await this.#checkpoints.load(runId, {});
        await this.#save(withAnswer(state, answer), await this.#saver(state, session));
      }),
    );
  }

  /**
   * Lets running nodes finish, and waits until all runs have stopped.
   *
   * @throws ConfigError if called from a node of one of them, which would wait for itself.
   */
  drain(): Promise<void> {
    const active = [...this.#active.keys()];
    for (const { control } of active) control.drain();
    const around = active.length > 0 ? callers() : [];
    const stopped = active.some(({ scope }) => around.includes(scope.name))
      ? Promise.reject(drainsItself())
      : Promise.allSettled(this.#active.values()).then(() => {});
    // A node may drain its graph, as long as it does not await that.
    stopped.catch(() => {});
    return stopped;
  }

  async #track<T extends State<D> | undefined>(
    runId: string,
    work: (session: RunSession<D>) => Promise<T>,
    claim?: Claim,
  ): Promise<T> {
    const session = new RunSession<D>(runId);
    const drain = (): void => session.control.drain();
    if (this.#draining?.aborted) drain();
    const ignore = this.#draining && onAbort(this.#draining, drain);
    const going = this.#claimed(session, () => work(session), claim);
    this.#active.set(session, going);
    try {
      return await going;
    } finally {
      this.#active.delete(session);
      session.end();
      ignore?.();
    }
  }

  /**
   * Claims the run while the work lasts.
   *
   * @throws CheckpointConflictError, naming the holder, before anything is done.
   */
  async #claimed<T>(session: RunSession<D>, work: () => Promise<T>, given?: Claim): Promise<T> {
    return session.under(given ? borrowed(given) : await this.#claim(session.runId), work);
  }

  /** A failed claim stops a run just as a failed save does. */
  async #claim(runId: string): Promise<Claim | undefined> {
    const { claim, onSaveError } = this.#graph.settings;
    try {
      return await claim(await this.#graph.storeIfAny(), runId);
    } catch (error) {
      const isConflict = isWaymarkError(error, "CHECKPOINT_CONFLICT");
      if (isConflict || onSaveError !== "continue") throw error;
      const data = { action: "save", node: "", error: messageOf(error) } as const;
      this.#graph.emit("checkpoint.error", runId, data);
      return undefined;
    }
  }

  async #start(state: State<D>, options: RunOptions<D>, session: RunSession<D>): Promise<State<D>> {
    const { settings } = this.#graph;
    const first = await this.#checked(restarted(state, this.#graph));
    const store = await this.#graph.storeIfAny();
    const { claim, control } = session;
    if (store !== undefined) await this.#graph.describe(store, state.runId);
    const saver = store && new Saver<D>(store, settings, first, { claim, control });
    return this.#walk(first, options, session, { after: undefined, isResumed: false, saver });
  }

  /** A new run's State, with its data as the schema returns it. */
  async #checked(state: State<D>): Promise<State<D>> {
    const { schema } = this.#graph.settings;
    if (schema === undefined) return state;
    const data = await validated("data", state.data, schema);
    return data === state.data ? state : replacedData(state, data);
  }

  /** The newest State of a run; `undefined` if it has to be started. */
  async #newestIfAny(runId: string): Promise<State<D> | undefined> {
    try {
      return await this.#checkpoints.load(runId, {});
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
    const isPaused = position.state.status === "paused";
    if (!isPaused) checkWanted(position.state, input);
    await graph.describe(await graph.store(), newest.runId);
    const setsBack = !isNewest(options);
    const continuation: Continuation<D> = { newest, from, position, setsBack, recovery };
    const first = resumed(continuation, graph);
    const saver = await this.#saver(newest, session, first);
    const state = isPaused
      ? await this.#answered(first, input, saver)
      : await this.#noted(first, continuation, saver);
    return this.#walk(state, options, session, {
      after: position.after,
      unfinished: position.next,
      isResumed: true,
      skipBreakpoint: isPastBreakpoint(continuation, state),
      saver,
    });
  }

  async #answered(state: State<D>, input: unknown, saver: Saver<D>): Promise<State<D>> {
    const taken = await withInput(state, input, this.#graph);
    const saved = await this.#save(taken.state, saver);
    if (taken.error !== undefined) throw taken.error;
    return saved;
  }

  async #noted(state: State<D>, continuation: Continuation<D>, saver: Saver<D>): Promise<State<D>> {
    const note = noteOf(state, continuation);
    const isRecovery = continuation.recovery !== undefined;
    if (note === undefined || (this.#graph.settings.mode === "exit" && !isRecovery)) return state;
    return this.#save(note, saver, isRecovery);
  }

  async #walk(
    state: State<D>,
    { signal, gate, onValues, input }: RunOptions<D>,
    session: RunSession<D>,
    from: Omit<Plan<D>, "settings" | "entry" | "names" | "signal" | "onValues">,
  ): Promise<State<D>> {
    const { settings, entry } = this.#graph;
    this.#checkBreakpoints(from.saver !== undefined);
    session.control.waitFor(gate);
    const names = this.#graph.topology.nodes.map(({ name }) => name);
    const plan = { settings, entry, names, signal, onValues, ...from };
    const last = await session.walk(state, plan);
    // The caller that gave a refused answer must learn why.
    if (input !== undefined && session.refusal !== undefined) throw session.refusal;
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

  async #saver(
    latest: State<D>,
    { control, claim }: RunSession<D>,
    from = latest,
  ): Promise<Saver<D>> {
    const store = await this.#graph.store();
    return new Saver<D>(store, this.#graph.settings, from, { latest, claim, control });
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

/** Throws if input is given to a run that is not paused. */
function checkWanted<D extends object>({ runId, status }: State<D>, input: unknown): void {
  if (input === undefined) return;
  const problem = `was given, but run ${show(runId)} is not paused: it is ${status}`;
  throw new ConfigError("input", problem);
}
function drainsItself(): ConfigError {
  const problem =
    "must not be awaited inside a node of a run that it stops: call it without await, or outside the graph";
  return new ConfigError("drain", problem);
}

/** A State with its data replaced. */
function replacedData<D extends object>(state: State<D>, data: unknown): State<D> {
  checkData(data);
  const kept: object = freezeCopy(data);
  return withRecord(state, { data: kept, traits: traitsOf(kept) });
}

/** A State at the beginning of a run of this graph; one that has run before starts over. */
function restarted<D extends object>(
  state: State<D>,
  { identity: graph, config, settings }: SavedGraph<D>,
): State<D> {
  const record = recordOf(state);
  const isFresh = state.status === "pending" && state.step === 0;
  const progress = isFresh ? record.progress : newProgress();
  const startedAt = isFresh ? state.startedAt : isoNow();
  return withRecord(state, {
    identity: {
      ...record.identity,
      ...mergedMetadata(record.identity, settings.metadata),
      ...{ graph, config, startedAt },
    },
    progress: { ...progress, ledger: progress.ledger.withLimits(settings.ledger) },
    saved: isFresh ? record.saved : unsaved,
  });
}
