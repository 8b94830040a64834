import type { CheckpointStore } from "../../checkpoint/store.js";
import { now } from "../../clock.js";
import { ConfigError, PauseTimeoutError, SchemaError, show } from "../../errors.js";
import { type InputSchemas, keptOf, momentOf } from "../../graph/pause.js";
import { type Check, text } from "../../options.js";
import { progressOf, withProgress } from "../../state/derive.js";
import { type Answer, isAnswerable, noPauses, type PauseRequest } from "../../state/pauses.js";
import { DATA_COPY } from "../../state/results.js";
import { isSchema, type StandardSchema, validated } from "../../state/schema.js";
import { isPlainObject } from "../../state/shape.js";
import type { Patch, State } from "../../state/state.js";
import { claimOf, RunControl } from "../loop/control.js";

/** Thrown through a node that pauses inside; the loop turns it into a paused run. */
export class PauseRequested extends Error {
  /** What the node waits for. */
  readonly requests: readonly PauseRequest[];

  constructor(requests: readonly PauseRequest[]) {
    super(`the run pauses: ${requests.map(({ reason }) => reason).join(", ")}`);
    this.name = "PauseRequested";
    this.requests = requests;
  }
}

/** What a node waits for: the pauses it asked for itself, and those it threw. */
export function pausesOf(error: unknown, asked: readonly PauseRequest[]): readonly PauseRequest[] {
  if (!(error instanceof PauseRequested)) return asked;
  const names = new Set(asked.map(({ name }) => name));
  return [...asked, ...error.requests.filter(({ name }) => !names.has(name))];
}

/** The key under which a dag remembers which of its tasks asked for each pause. */
export const ASKED = "asked";

/** The task that asked for each pause, as a dag remembers it. */
export function askersOf(remembered: unknown): Map<string, string> {
  return new Map(remembered as ReadonlyMap<string, string> | undefined);
}

/** The pause at a breakpoint of the config. */
export function breakpoint(where: "before" | "after", node: string): PauseRequest {
  return Object.freeze({
    name: "",
    reason: `breakpoint ${where} ${show(node)}`,
    breakpoint: where,
  });
}

/** The error of a pause in a run that is not saved. */
export function cannotPause({ reason }: PauseRequest): ConfigError {
  return new ConfigError(
    "config.checkpoint.interval",
    `is 0, so a run that pauses (${reason}) could never continue: set it to 1 or more`,
  );
}

/** The pause of a run that continues by itself at a set time. */
export function waitUntil(name: string, until: number): PauseRequest {
  const moment = momentOf(until);
  return Object.freeze({ name, reason: `${name} until ${moment}`, until: moment });
}

/** With the name of a pause: the key under which a visit remembers its answer. */
export const ANSWER = "pause: ";
/** With the name of a sleep: the key under which a visit remembers when it ends. */
export const SLEEP = "sleep: ";
/** With the name of a pause: the key under which a visit remembers when it times out. */
export const DEADLINE = "deadline: ";
/** The key under which a visit remembers its failed attempts while it waits for the next one. */
export const RETRY = "retry: ";
const reserved = [ANSWER, SLEEP, DEADLINE, RETRY, DATA_COPY];

/** Whether a pause has timed out. */
export function isExpired(pause: PauseRequest): pause is PauseRequest & { deadline: string } {
  return pause.deadline !== undefined && now() >= Date.parse(pause.deadline);
}

/** @throws PauseTimeoutError if a pause has timed out. */
export function checkDeadline(pause: PauseRequest): void {
  if (isExpired(pause)) throw new PauseTimeoutError(pause.name, pause.deadline);
}

/** Whether a key is used by the run itself, not by a node. */
export function isOwnKey(key: string): boolean {
  return reserved.some((prefix) => key.startsWith(prefix));
}

/** Checks that a node's key is not one that the run itself uses. */
export const workKey: Check = (name, value) => {
  text(name, value);
  const prefix = reserved.find((one) => String(value).startsWith(one));
  if (prefix === undefined) return;
  throw new ConfigError(name, `can't begin with "${prefix}", which is reserved for the run itself`);
};

/** A paused run with its input taken, or the error of a kept answer that it refuses. */
interface Input<D extends object> {
  readonly state: State<D>;
  readonly error?: unknown;
}

/** What a pause gets: the caller's input or a kept answer. */
interface Reply {
  readonly pause: PauseRequest;
  /** The kept answer; `undefined` for input. */
  readonly answer: Answer | undefined;
  readonly value?: unknown;
  /** Why a kept answer is refused. */
  readonly error?: Error;
}

/**
 * A paused State with its input applied: as answers if the node paused inside, otherwise in its data. Missing input
 * is taken from the answers that the run keeps. A pause that asks for nothing is answered by any resume.
 *
 * @throws ConfigError if an input is needed and missing, or given and not needed.
 * @throws SchemaError if an input does not fit the schema of its node.
 * @throws PauseTimeoutError if the answered pause has timed out, or an unanswered one has and there is no
 * `onTimeout`.
 * @throws SerializationError if a checkpoint can't hold it.
 */
export async function answered<D extends object>(
  state: State<D>,
  input: unknown,
  schemas: InputSchemas | undefined,
): Promise<Input<D>> {
  const { pauses, unfinished, answers } = progressOf(state);
  refuseNeedless(pauses, input);
  const isOnly = pauses.length === 1;
  const given = byName(pauses, input);
  const replies: Reply[] = [];
  const missing: PauseRequest[] = [];
  for (const pause of pauses) {
    const has = Object.hasOwn(given, pause.name);
    if (has) checkDeadline(pause);
    const answer = has ? undefined : answerTo(pause, answers);
    if (!has && answer === undefined && needsAnswer(pause)) {
      if (!isExpired(pause)) missing.push(pause);
      continue;
    }
    const schema = schemaOf(schemas, pause.name);
    const isKept = input === undefined && answer !== undefined;
    const label = isOnly ? "input" : `input.${pause.name}`;
    try {
      let value = has ? given[pause.name] : answer?.value;
      if (schema !== undefined) value = await validated(isKept ? "input" : label, value, schema);
      value = keptOf(value, label);
      if (unfinished === undefined) value = toPatch(pause.into, value);
      replies.push({ pause, answer, value });
    } catch (error) {
      // Whoever gave the answer is not here: the pause asks again.
      const isRefused = error instanceof SchemaError || error instanceof ConfigError;
      if (!isKept || !isRefused) throw error;
      replies.push({ pause, answer, error });
    }
  }
  const refused = replies.filter(({ error }) => error !== undefined);
  if (refused.length > 0) return askedAgain(state, refused);
  // Several pauses may be answered one at a time, and one that only waits for a set time may have reached it.
  const isNone =
    Object.keys(given).length === 0 &&
    replies.every(({ answer }) => answer === undefined) &&
    !pauses.some((pause) => pause.until !== undefined || isExpired(pause));
  if (missing.length > 0 && isNone) throw unanswered(missing, isOnly);
  const left = { pauses: noPauses, answers: without(answers, replies) };
  if (unfinished === undefined) {
    let next = state;
    for (const pause of pauses) {
      const reply = replies.find((one) => one.pause === pause);
      const patch = reply === undefined ? onTimeoutOf(pause) : reply.value;
      if (patch !== undefined) next = next.merge(patch as Patch<D>);
    }
    return { state: withProgress(next, left) };
  }
  let { results } = unfinished;
  for (const { pause, value } of replies) results = results.with(ANSWER + pause.name, value);
  // Marked opaque without a check of the answers: a pause is rare.
  const count = unfinished.count + replies.length;
  const next = Object.freeze({ ...unfinished, results, count, opaque: true });
  return { state: withProgress(state, { ...left, unfinished: next }) };
}

/** The run without the answers that are not valid, and the error of the first of them. */
function askedAgain<D extends object>(state: State<D>, refused: readonly Reply[]): Input<D> {
  const { pauses, answers } = progressOf(state);
  const asked = pauses.map((pause) => {
    const error = refused.find((reply) => reply.pause === pause)?.error;
    return error === undefined ? pause : Object.freeze({ ...pause, refused: error.message });
  });
  const changes = { pauses: Object.freeze(asked), answers: without(answers, refused) };
  return { state: withProgress(state, changes), error: refused[0]?.error };
}

/** The answers that none of the replies has taken. */
function without(answers: readonly Answer[], replies: readonly Reply[]): readonly Answer[] {
  const left = answers.filter((one) => !replies.some(({ answer }) => answer === one));
  return left.length === answers.length ? answers : Object.freeze(left);
}

function toPatch(into: string | undefined, value: unknown): object | undefined {
  if (value === undefined) return undefined;
  if (into !== undefined) return { [into]: value };
  if (isPlainObject(value)) return value;
  throw new ConfigError(
    "input",
    `must be an object to merge into the data; got ${show(value)}: or give the pause a key, "into"`,
  );
}

/** The changes that a timed-out pause makes to the data. */
function onTimeoutOf(pause: PauseRequest): object | undefined {
  if (pause.onTimeout === undefined) checkDeadline(pause);
  return isExpired(pause) ? pause.onTimeout : undefined;
}

function refuseNeedless(pauses: readonly PauseRequest[], input: unknown): void {
  const stop = pauses.find(({ breakpoint }) => breakpoint !== undefined);
  const waits = pauses.every(({ until }) => until !== undefined) ? pauses[0] : undefined;
  if (input === undefined || (stop ?? waits) === undefined) return;
  const why = stop === undefined ? `waits (${waits?.reason})` : `stopped at a ${stop.reason}`;
  const problem = `was given, but the run only ${why}: resume it without input`;
  throw new ConfigError("input", problem);
}

/** The oldest answer to a pause. */
function answerTo(pause: PauseRequest, answers: readonly Answer[]): Answer | undefined {
  return isAnswerable(pause) ? answers.find(({ name }) => name === pause.name) : undefined;
}

function needsAnswer({ ask, schema, deadline }: PauseRequest): boolean {
  return ask !== undefined || schema !== undefined || deadline !== undefined;
}

/** The input for each pause, by name; that for a single one is given without it. */
function byName(
  pauses: readonly PauseRequest[],
  input: unknown,
): Readonly<Record<string, unknown>> {
  const names = pauses.map(({ name }) => show(name)).join(", ");
  if (input === undefined) return {};
  if (pauses.length === 1) return Object.fromEntries(pauses.map(({ name }) => [name, input]));
  if (!isPlainObject(input)) {
    const problem = `must be an object with a value for one or more of ${names}; got ${show(input)}`;
    throw new ConfigError("input", problem);
  }
  const unknown = Object.keys(input).find((key) => !pauses.some(({ name }) => name === key));
  if (unknown === undefined) return input;
  throw new ConfigError(`input.${unknown}`, `answers nothing: the run waits for ${names}`);
}

function unanswered(missing: readonly PauseRequest[], isOnly: boolean): ConfigError {
  const asked = missing.map(({ name, reason, ask }) => {
    const label = isOnly ? "" : `${show(name)}: `;
    return `${label}${reason} (${typeof ask === "string" ? show(ask) : "see state.pauses"})`;
  });
  const how = isOnly ? "" : " with a value for each name";
  return new ConfigError(
    "input",
    `is missing: the run is paused for ${asked.join("; ")}. Call resume(runId, { input })${how}`,
  );
}

function schemaOf(schemas: InputSchemas | undefined, name: string): StandardSchema | undefined {
  if (schemas === undefined || isSchema(schemas)) return schemas;
  return Object.hasOwn(schemas, name) ? schemas[name] : undefined;
}

/** The number of answers that a run keeps for pauses it has not reached yet. */
const MOST_ANSWERS = 100;

/** @throws ConfigError if a run has no room for another answer. */
export function checkRoom(runId: string, answers: readonly Answer[]): void {
  if (answers.length < MOST_ANSWERS) return;
  const problem = `can't be kept: run ${show(runId)} has ${MOST_ANSWERS} that no pause has taken`;
  throw new ConfigError("answer", problem);
}

/**
 * Creates an answer as a checkpoint stores it.
 *
 * @throws SerializationError if a checkpoint can't hold the value.
 */
export function toAnswer(name: string, value: unknown): Answer {
  return Object.freeze({ name, value: keptOf(value, "value") });
}

/**
 * A State of a run that nobody works on, with an answer for one of its pauses.
 *
 * @throws ConfigError if the run has completed, or has too many unused answers.
 * @throws PauseTimeoutError if the pause has timed out.
 */
export function withAnswer<D extends object>(state: State<D>, answer: Answer): State<D> {
  const { pauses, answers } = progressOf(state);
  const { runId, status } = state;
  if (status === "completed") {
    throw new ConfigError("answer", `was given, but run ${show(runId)} is completed`);
  }
  const asked = pauses.find(({ name }) => name === answer.name);
  if (asked !== undefined) checkDeadline(asked);
  checkRoom(runId, answers);
  return withProgress(state, { answers: Object.freeze([...answers, answer]) });
}

/**
 * Changes and saves a run that nobody works on, without needing its graph.
 *
 * @throws CheckpointConflictError if a process works on the run.
 * @throws CheckpointNotFoundError if it is not in the store.
 */
export async function changeRun<D extends object>(
  store: CheckpointStore,
  runId: string,
  change: (state: State<D>) => State<D>,
): Promise<State<D>> {
  const work = async () => store.save(change(await store.load<D>(runId)));
  return new RunControl(runId).under(await claimOf(store, runId), work);
}
