import { listRuns } from "../checkpoint/any-store.js";
import { forkRun, rollBackRun } from "../checkpoint/fork.js";
import type { CheckpointAt, CheckpointStore } from "../checkpoint/store.js";
import { CheckpointNotFoundError, show } from "../errors.js";
import type { Audit } from "../event-map.js";
import { removeRunFiles } from "../observers/remove-run-files.js";
import { type Check, object, text } from "../options.js";
import { claimOf } from "../run/loop/control.js";
import { type AnyGraph, StateGraph } from "../run/state-graph.js";
import { decode } from "../state/decode.js";
import { isAnswerable, type PauseRequest } from "../state/pauses.js";
import type { State } from "../state/state.js";
import type { QueuedRun } from "../worker/source.js";
import type { ActionResult } from "./api.js";
import type { Studio } from "./context.js";
import { badRequest, HttpError, refuse } from "./http.js";

type Body = Readonly<Record<string, unknown>>;

/** An action on a run; returns its result and the HTTP status. */
type Action = (runId: string, body: Body, audit: Audit) => Promise<[ActionResult, status: number]>;

export class Actions {
  readonly #studio: Studio;
  /** The graphs, bound to the studio's store. */
  readonly #inside = new Map<AnyGraph, AnyGraph>();
  readonly #draining = new AbortController();

  constructor(studio: Studio) {
    this.#studio = studio;
  }

  /** The actions of `POST` routes, by name. */
  readonly byName: Readonly<Record<string, Action>> = {
    resume: (runId, body, audit) => this.#resume(runId, body, audit),
    retry: (runId, body, audit) => this.#retry(runId, body, audit),
    answer: (runId, body, audit) => this.#answer(runId, body, audit),
    fork: (runId, body, audit) => this.#fork(runId, body, audit),
    replay: (runId, body, audit) => this.#replay(runId, body, audit),
    rollback: (runId, body, audit) => this.#rollback(runId, body, audit),
    cancel: (runId, body, audit) => this.#cancel(runId, body, audit),
  };

  /** Removes a run, its log and its progress file. */
  async delete(runId: string, audit: Audit): Promise<void> {
    const store = this.#studio.storeFor(audit);
    await this.#checkFree(runId);
    // A store ignores a run that it does not have; here that is a 404.
    const [run] = await listRuns(store, { runId, limit: 1 });
    const isThere = run !== undefined || (await store.list()).includes(runId);
    if (!isThere) throw new CheckpointNotFoundError(runId);
    await store.delete(runId);
    await removeRunFiles(this.#studio.settings.log, runId);
  }

  /** Stops the runs that were continued here, so that they can be resumed. */
  async close(): Promise<void> {
    this.#draining.abort();
    await Promise.all([...this.#inside.values()].map((graph) => graph.drain()));
  }

  async #resume(runId: string, body: Body, audit: Audit): ReturnType<Action> {
    checkFields(body, { at: text, input: anything });
    const state = await this.#idle(runId, audit);
    const input = "input" in body ? { input: decoded(body.input, "input") } : {};
    const place = await this.#placeOf(runId, body.at);
    return this.#continue(state, { ...place, ...input }, audit);
  }

  async #retry(runId: string, body: Body, audit: Audit): ReturnType<Action> {
    checkFields(body, {});
    const state = await this.#idle(runId, audit);
    if (state.status !== "failed") throw wrongStatus(state, "failed");
    return this.#continue(state, {}, audit);
  }

  async #answer(runId: string, body: Body, audit: Audit): ReturnType<Action> {
    checkFields(body, { name: text, input: anything });
    if (!("input" in body)) throw badRequest("input is required");
    const value = decoded(body.input, "input");
    const state = await this.#idle(runId, audit);
    const open = state.pauses.filter(isAnswerable);
    if (state.status !== "paused" || open.length === 0) throw wrongStatus(state, "paused");
    const { name } = pauseOf(open, body.name, runId);
    const run = await this.#queued(state);
    if (run !== undefined) {
      await (state.pauses.length === 1 ? run.resume(value) : run.answer(name, value));
      return [resultOf(state), 202];
    }
    // If there are several, each is answered by its name.
    const input = state.pauses.length === 1 ? value : { [name]: value };
    return this.#continue(state, { input }, audit);
  }

  async #fork(runId: string, body: Body, audit: Audit): ReturnType<Action> {
    checkFields(body, { at: text, data: object });
    return [resultOf(await this.#forked(runId, body, audit)), 200];
  }

  async #replay(runId: string, body: Body, audit: Audit): ReturnType<Action> {
    checkFields(body, { at: text, data: object });
    if (body.at === undefined) throw badRequest("at must name a checkpoint");
    // Checked before anything is saved.
    this.#runnable((await this.#store(audit).load(runId)).graph?.name ?? "");
    return this.#continue(await this.#forked(runId, body, audit), {}, audit);
  }

  async #forked(runId: string, body: Body, audit: Audit): Promise<State<object>> {
    const place = await this.#placeOf(runId, body.at);
    const changes = decoded(body.data ?? {}, "data") as object;
    return forkRun(this.#store(audit), runId, place, changes);
  }

  async #rollback(runId: string, body: Body, audit: Audit): ReturnType<Action> {
    checkFields(body, { at: text });
    const place = await this.#placeOf(runId, body.at);
    if (Object.keys(place).length === 0) throw badRequest("at must name a checkpoint");
    await this.#checkFree(runId);
    const store = this.#store(audit);
    return [resultOf(await rollBackRun(store, await store.load<object>(runId, place))), 200];
  }

  async #cancel(runId: string, body: Body, audit: Audit): ReturnType<Action> {
    checkFields(body, {});
    const state = await this.#store(audit).load<object>(runId);
    const run = (await this.#queued(state)) ?? this.#graph(state).attach(runId);
    await run.cancel();
    return [resultOf(await this.#studio.settings.store.load<object>(runId)), 200];
  }

  /** Lets a graph or a worker continue a run; resolves when it has started, or is in the queue. */
  async #continue(
    state: State<object>,
    options: CheckpointAt & { readonly input?: unknown },
    audit: Audit,
  ): ReturnType<Action> {
    const { runId } = state;
    const run = await this.#queued(state);
    if (run === undefined) {
      // A run that can't start rejects before its first save; how it ends is in its checkpoints.
      await this.#graph(state).start(runId, { ...options, audit }).saved;
      return [{ ...resultOf(state), status: "in_progress" }, 202];
    }
    const { input, ...place } = options;
    const isBack = Object.keys(place).length > 0;
    const store = this.#store(audit);
    if (isBack) await rollBackRun(store, await store.load<object>(runId, place));
    await run.resume(input);
    return [resultOf(state), 202];
  }

  /** Loads a run that no process works on. */
  async #idle(runId: string, audit: Audit): Promise<State<object>> {
    const state = await this.#store(audit).load<object>(runId);
    this.#runnable(state.graph?.name ?? "");
    await this.#checkFree(runId);
    if (state.status === "completed") throw wrongStatus(state, "unfinished");
    return state;
  }

  #store(audit: Audit): CheckpointStore {
    return this.#studio.storeFor(audit);
  }

  #runnable(graph: string): void {
    if (!this.#studio.canRun(graph)) throw notRunnable(graph);
  }

  async #queued({ graph, runId }: State<object>): Promise<QueuedRun | undefined> {
    return this.#studio.settings.client?.run(graph?.name ?? "", runId);
  }

  /** The graph of a run, bound to the studio's store. */
  #graph(state: State<object>): AnyGraph {
    const { graphs, store } = this.#studio.settings;
    const name = state.graph?.name ?? "";
    const graph = graphs.get(name);
    if (graph === undefined) throw notRunnable(name);
    const known = this.#inside.get(graph);
    if (known !== undefined) return known;
    const { signal } = this.#draining;
    const claim = { claim: claimOf };
    const inside = StateGraph.inside(graph, store, signal, Number.POSITIVE_INFINITY, claim);
    this.#inside.set(graph, inside);
    return inside;
  }

  async #placeOf(runId: string, at: unknown): Promise<CheckpointAt> {
    return this.#studio.placeOf(runId, at as string | undefined);
  }

  async #checkFree(runId: string): Promise<void> {
    const holder = await this.#studio.settings.store.holder?.(runId);
    if (holder === undefined) return;
    const where = `${holder.pid}${holder.host && ` on ${holder.host}`}`;
    const message = `process ${where} works on run ${runId}`;
    throw new HttpError(409, "CHECKPOINT_CONFLICT", message, "cancel it first, or wait");
  }
}

function notRunnable(graph: string): HttpError {
  const message = `the studio has neither the code of graph ${show(graph)} nor a worker for it`;
  const help = "give studio() graphs or client, or name the graph in waymark.config.ts";
  return new HttpError(501, "NOT_RUNNABLE", message, help);
}

const anything: Check = () => {};

function checkFields(body: Body, fields: Readonly<Record<string, Check>>): void {
  for (const [name, value] of Object.entries(body)) {
    const check = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (check === undefined) throw badRequest(`${name} is not a field of this request`);
    check(name, value, refuse);
  }
}

function decoded(tree: unknown, name: string): unknown {
  return decode(tree, name).value;
}

function pauseOf(open: readonly PauseRequest[], name: unknown, runId: string): PauseRequest {
  const found = name === undefined && open.length === 1 ? open[0] : undefined;
  const named = found ?? open.find((pause) => pause.name === name);
  if (named !== undefined) return named;
  const names = open.map((pause) => JSON.stringify(pause.name)).join(", ");
  throw new HttpError(409, "NO_SUCH_PAUSE", `run ${runId} waits for: ${names}`);
}

function wrongStatus({ runId, status }: State<object>, wanted: string): HttpError {
  return new HttpError(409, "WRONG_STATUS", `run ${runId} must be ${wanted}; it is ${status}`);
}

function resultOf({ runId, status, step }: State<object>): ActionResult {
  return { runId, status, step };
}
