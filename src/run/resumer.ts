import { rolledBack, waitsForResume } from "../checkpoint/fork.js";
import { isNewest } from "../checkpoint/store.js";
import { ConfigError, isWaymarkError, show } from "../errors.js";
import { progressOf, withProgress, withRecord } from "../state/derive.js";
import { mergedMetadata } from "../state/metadata.js";
import type { Answer } from "../state/record.js";
import { validated } from "../state/schema.js";
import { recordOf, type State } from "../state/state.js";
import { withAnswer } from "./answers.js";
import { Checkpoints } from "./checkpoints.js";
import { hasCrashed, withCrash } from "./crash.js";
import { outsideRun } from "./failure.js";
import { answered, refusedAnswers } from "./pauses.js";
import type { Plan } from "./run.js";
import type { RunPosition } from "./run-position.js";
import type { Running, RunOptions } from "./running.js";
import type { SavedGraph } from "./saved-graph.js";
import { Saver } from "./saver.js";

/** Returns the State to continue a run from, or to save and stop at, given its newest one; `undefined` leaves the run as it is. */
export type Prepare = <D extends object>(
  newest: State<D>,
  load: (checkpointId: string) => Promise<State<D>>,
) => Promise<{ readonly state: State<D>; readonly continues: boolean } | undefined>;

/** What a run starts from: the part of its plan that differs between runs of a graph. */
export type StartingPoint<D extends object> = Omit<
  Plan<D>,
  "settings" | "nodes" | "entry" | "claim" | "gate" | "onValues"
>;

/** Continues a run from this State. */
type RunFrom<D extends object> = (
  state: State<D>,
  options: RunOptions<D>,
  running: Running<D>,
  from: StartingPoint<D>,
) => Promise<State<D>>;

/** Continues runs from the store. */
export class Resumer<D extends object> {
  readonly #graph: SavedGraph<D>;
  readonly #checkpoints: Checkpoints<D>;
  readonly #go: RunFrom<D>;

  constructor(graph: SavedGraph<D>, go: RunFrom<D>) {
    this.#graph = graph;
    this.#checkpoints = new Checkpoints(graph);
    this.#go = go;
  }

  /** The run that a checkpoint belongs to. */
  runOf(checkpointId: string): Promise<string> {
    return this.#checkpoints.runOf(checkpointId);
  }

  /** The newest State of a run. */
  newest(runId: string): Promise<State<D>> {
    return this.#checkpoints.load(runId, {});
  }

  /** Continues a run. */
  async resume(runId: string, options: RunOptions<D>, running: Running<D>): Promise<State<D>> {
    const { step, checkpointId } = options;
    const loaded = await this.#checkpoints.load(runId, { step, checkpointId });
    return this.#continue(loaded, options, running);
  }

  /** Continues a run if the store has it; `undefined` if it has to be started. */
  async resumeIfAny(
    runId: string,
    options: RunOptions<D>,
    running: Running<D>,
  ): Promise<State<D> | undefined> {
    const loaded = await this.newest(runId).catch((error: unknown) => {
      if (isWaymarkError(error, "CHECKPOINT_CORRUPT")) {
        const message = `the run starts over: ${error.message}`;
        const data = { kind: "fresh-start", node: "", message } as const;
        this.#graph.emit("checkpoint.warning", runId, data);
      } else if (!isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) {
        throw error;
      }
      return undefined;
    });
    return loaded && this.#continue(loaded, options, running);
  }

  /**
   * Continues a run from the State that `prepare` returns, which is saved first; `undefined` if the run was left as it
   * is.
   */
  async recover(
    runId: string,
    options: RunOptions<D>,
    prepare: Prepare,
    running: Running<D>,
  ): Promise<State<D> | undefined> {
    const loaded = await this.newest(runId);
    this.#graph.position(loaded);
    const load = (checkpointId: string) => this.#checkpoints.load(runId, { checkpointId });
    const prepared = await prepare(loaded, load);
    if (prepared === undefined) return undefined;
    const { continues } = prepared;
    const from = continues ? this.#resumed(prepared.state) : prepared.state;
    const next = continues && hasCrashed(loaded) ? withCrash(from, this.#entry) : from;
    const state = await this.#save(next, await this.#saver(loaded, running));
    return continues ? this.#continue(state, options, running, loaded) : state;
  }

  /** Puts an answer for a pause into the store. */
  async keepAnswer(runId: string, answer: Answer, claimed: Running<D>): Promise<void> {
    const state = await this.#checkpoints.load(runId, {});
    const next = withAnswer(state, answer);
    await this.#save(next, await this.#saver(state, claimed));
  }

  /** @param noted - the State before its crash was noted, if that was done already. */
  async #continue(
    loaded: State<D>,
    options: RunOptions<D>,
    running: Running<D>,
    noted?: State<D>,
  ): Promise<State<D>> {
    const { runId } = loaded;
    const { input } = options;
    const isDone = loaded.status === "completed" && progressOf(loaded).unfinished === undefined;
    const { state: stands, after, next } = isDone ? atEnd(loaded) : this.#graph.position(loaded);
    const { status } = stands;
    const isPaused = status === "paused";
    if (!isPaused && input !== undefined) {
      const problem = `was given, but run ${show(runId)} is not paused: it is ${status}`;
      throw new ConfigError("input", problem);
    }
    if (isDone) return withProgress(loaded, { error: undefined, nextNode: undefined });
    await this.#graph.describe(await this.#graph.store(), runId);
    const { checkpointId, sequence, savedAt } = loaded;
    // A run that was set back differs from what the store has, even if it is stopped before its first save.
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
    const hasStarted = status !== "pending" || waitsForResume(loaded);
    const isUnnoted = hasStarted && isNewest(options) && noted === undefined;
    const state = isPaused
      ? await this.#answer(from, input, saver)
      : isUnnoted && this.#graph.settings.mode !== "exit"
        ? await this.#noteResume(from, saver)
        : from;
    const skipBreakpoint = state.reason === BREAKPOINT || isPastBreakpoint;
    return this.#go(state, options, running, {
      after,
      unfinished: next,
      skipBreakpoint,
      saver,
    });
  }

  /** A State with its resume counted and this graph's metadata, since this graph works on the run from here on. */
  #resumed(state: State<D>): State<D> {
    const { identity, progress } = recordOf(state);
    return withRecord(state, {
      identity: { ...identity, ...mergedMetadata(identity, this.#graph.settings.metadata) },
      progress: { ...progress, resumes: progress.resumes + 1 },
    });
  }

  get #entry(): string {
    return this.#graph.topology.entry?.name ?? "";
  }

  /**
   * Saves that a run is resumed, so that it is found if its process dies before the next save. A failed run keeps its
   * status and error until it gets further.
   */
  #noteResume(state: State<D>, saver: Saver<D>): Promise<State<D>> {
    const reason = state.reason === BREAKPOINT ? BREAKPOINT : "resume";
    const status = state.status === "failed" ? "failed" : "in_progress";
    return this.#save(withProgress(state, { status, reason }), saver, false);
  }

  /** Takes a paused run's input, and saves it before it is used. */
  async #answer(state: State<D>, input: unknown, saver: Saver<D>): Promise<State<D>> {
    const node = progressOf(state).unfinished?.node ?? state.checkpointNode;
    const schemas = this.#graph.topology.find(node)?.input;
    const refused = input === undefined ? await refusedAnswers(state, schemas) : undefined;
    if (refused !== undefined) {
      await this.#save(refused.state, saver);
      throw refused.error;
    }
    const next = await answered(state, input, schemas);
    const { schema } = this.#graph.settings;
    // Saved as it is, it would make every later resume fail.
    if (schema !== undefined && next.data !== state.data)
      await validated("data", next.data, schema);
    const stopped = state.pauses.some(({ breakpoint }) => breakpoint === "before");
    const reason = stopped ? BREAKPOINT : input === undefined ? "resume" : "input";
    const goingOn = withProgress(next, { status: "in_progress", reason });
    // The input may lead to another edge.
    const nextNode = this.#graph.nextNode(goingOn);
    return this.#save(withProgress(goingOn, { nextNode }), saver);
  }

  async #saver(latest: State<D>, { claim }: Running<D>, from = latest): Promise<Saver<D>> {
    const store = await this.#graph.store();
    return new Saver<D>(store, this.#graph.settings, from, { latest, claim });
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

/** The reason of a checkpoint at which a run continued from a breakpoint before a node. */
const BREAKPOINT = "breakpoint";

/** Whether a node has begun and failed. */
function hasFailedAt<D extends object>({ error }: State<D>, node: string | undefined): boolean {
  return error !== undefined && error.node === node;
}

/** The position of a run that has ended, whatever became of its last node. */
function atEnd<D extends object>(state: State<D>): RunPosition<D> {
  return { state, after: undefined, next: undefined };
}
