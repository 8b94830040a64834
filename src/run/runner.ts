import type { Audit } from "../audit.js";
import type { Claim } from "../checkpoint/store.js";
import { isoNow } from "../clock.js";
import { Mutex, onAbort } from "../concurrency.js";
import { ConfigError, isWaymarkError, messageOf } from "../errors.js";
import { string } from "../options.js";
import { withRecord } from "../state/derive.js";
import { freezeCopy } from "../state/freeze-copy.js";
import { checkData } from "../state/input.js";
import { traitsOf } from "../state/json-traits.js";
import { mergedMetadata } from "../state/metadata.js";
import { type GraphIdentity, newProgress, unsaved } from "../state/record.js";
import { checkRunId } from "../state/run-id.js";
import { validated } from "../state/schema.js";
import { recordOf, type State } from "../state/state.js";
import { toAnswer } from "./answers.js";
import { borrowed } from "./claim.js";
import type { Settings } from "./config.js";
import { type Prepare, Resumer, type StartingPoint } from "./resumer.js";
import { Run } from "./run.js";
import { Running, type RunOptions } from "./running.js";
import type { SavedGraph } from "./saved-graph.js";
import { Saver } from "./saver.js";

/** Starts and continues the runs of a graph in this process. */
export class Runner<D extends object> {
  readonly #graph: SavedGraph<D>;
  readonly #resumer: Resumer<D>;
  readonly #draining: AbortSignal | undefined;
  readonly #active: Map<Running<D>, Promise<State<D> | undefined>>;
  /** Writes answers to the store one at a time. */
  readonly #answers = new Mutex();

  /** @param draining - also drains the runs; the signal of the node that contains them. */
  constructor(
    graph: SavedGraph<D>,
    draining?: AbortSignal,
    active = new Map<Running<D>, Promise<State<D> | undefined>>(),
  ) {
    this.#active = active;
    this.#graph = graph;
    this.#draining = draining;
    this.#resumer = new Resumer(graph, (state, options, running, from) =>
      this.#go(state, true, options, running, from),
    );
  }

  /** The same runner for one audited call: its checkpoint events name who made it. */
  for(audit: Audit | undefined): Runner<D> {
    if (audit === undefined) return this;
    const graph = this.#graph.with({ audit: Object.freeze({ ...audit }) });
    return new Runner(graph, this.#draining, this.#active);
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
      const runId = await this.#resumer.runOf(checkpointId);
      return this.resume(runId, { ...options, checkpointId });
    }
    return this.#track(run, async (running) => this.#resumer.resume(run, options, running));
  }

  resumeOrStart(state: State<D>, options: RunOptions<D>): Promise<State<D>> {
    return this.#track(state.runId, async (running) => {
      const resumed = await this.#resumer.resumeIfAny(state.runId, options, running);
      return resumed ?? this.#start(state, options, running);
    });
  }

  /**
   * Continues a run from the State that `prepare` returns; `undefined` if it was left as it is.
   *
   * @param claim - the claim of the recovering process.
   */
  recover(
    runId: string,
    options: RunOptions<D>,
    prepare: Prepare,
    claim?: Claim,
  ): Promise<State<D> | undefined> {
    const go = (running: Running<D>): Promise<State<D> | undefined> =>
      this.#resumer.recover(runId, options, prepare, running);
    return this.#track(runId, go, claim);
  }

  /** The newest run in progress in this process with this id. */
  running(runId: string): Running<D> | undefined {
    return [...this.#active.keys()].findLast((running) => running.runId === runId);
  }

  /** The result of a run in progress. */
  async resultOf(running: Running<D>): Promise<State<D>> {
    // A recovery that leaves the run as it is has no result.
    return (await this.#active.get(running)) ?? this.#resumer.newest(running.runId);
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
    const running = this.running(runId);
    if (running !== undefined) {
      if (await running.answer(answer)) return;
      await running.stopped;
    }
    const keep = (claimed: Running<D>): Promise<void> =>
      this.#resumer.keepAnswer(runId, answer, claimed);
    const claimed = new Running<D>(runId);
    await this.#answers.run(() => this.#claimed(runId, claimed, keep));
  }

  /**
   * Lets running nodes finish, and waits until all runs have stopped.
   *
   * @throws ConfigError if called from a node of one of them, which would wait for itself.
   */
  drain(): Promise<void> {
    const active = [...this.#active.keys()];
    for (const running of active) running.drain();
    const stopped = active.some(({ scope }) => scope.isInside)
      ? Promise.reject(drainsItself())
      : Promise.allSettled(this.#active.values()).then(() => {});
    // A node may drain its graph, as long as it does not await that.
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
    const ignore = this.#draining && onAbort(this.#draining, drain);
    const going = this.#claimed(runId, running, go, claim);
    this.#active.set(running, going);
    try {
      return await going;
    } finally {
      this.#active.delete(running);
      running.end();
      ignore?.();
    }
  }

  /**
   * Claims the run while the work lasts.
   *
   * @throws CheckpointConflictError, naming the holder, before anything is done.
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
      // A claim that can't be released ends with this process.
      await claim?.release().catch(() => {});
    }
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

  async #start(state: State<D>, options: RunOptions<D>, running: Running<D>): Promise<State<D>> {
    const { identity, settings } = this.#graph;
    const first = await this.#checked(restarted(state, identity, settings));
    const store = await this.#graph.storeIfAny();
    const { claim } = running;
    if (store !== undefined) await this.#graph.describe(store, state.runId);
    const saver = store && new Saver<D>(store, settings, first, { claim });
    return this.#go(first, false, options, running, { after: undefined, saver });
  }

  /** A new run's State, with its data as the schema returns it. */
  async #checked(state: State<D>): Promise<State<D>> {
    const { schema } = this.#graph.settings;
    if (schema === undefined) return state;
    const data = await validated("data", state.data, schema);
    return data === state.data ? state : replacedData(state, data);
  }

  async #go(
    state: State<D>,
    resumed: boolean,
    { signal, gate, onValues, input }: RunOptions<D>,
    running: Running<D>,
    from: StartingPoint<D>,
  ): Promise<State<D>> {
    const { settings, topology } = this.#graph;
    const { nodes } = topology;
    const entry = this.#graph.validate();
    this.#checkBreakpoints(from.saver !== undefined);
    const { claim } = running;
    const plan = { settings, nodes, entry, claim, gate, onValues, ...from };
    const run = new Run(plan, state);
    running.attach(run);
    const last = await running.scope.run(() => run.go(state, resumed, signal));
    // The caller that gave a refused answer must learn why.
    if (input !== undefined && run.refusal !== undefined) throw run.refusal;
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
  graph: GraphIdentity,
  settings: Settings,
): State<D> {
  const record = recordOf(state);
  const isFresh = state.status === "pending" && state.step === 0;
  const progress = isFresh ? record.progress : newProgress();
  const startedAt = isFresh ? state.startedAt : isoNow();
  return withRecord(state, {
    identity: {
      ...record.identity,
      ...mergedMetadata(record.identity, settings.metadata),
      ...{ graph, startedAt },
    },
    progress: { ...progress, ledger: progress.ledger.withLimits(settings.ledger) },
    saved: isFresh ? record.saved : unsaved,
  });
}
