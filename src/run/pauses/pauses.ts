import { now } from "../../clock.js";
import { ConfigError, PauseTimeoutError, SchemaError, show } from "../../errors.js";
import { type InputSchemas, momentOf } from "../../graph/pause.js";
import { type Check, text } from "../../options.js";
import { progressOf, withProgress } from "../../state/derive.js";
import { encode } from "../../state/encode.js";
import { freezeCopy } from "../../state/freeze-copy.js";
import { type Answer, noPauses, type PauseRequest } from "../../state/pauses.js";
import { DATA_COPY } from "../../state/results.js";
import { isSchema, type StandardSchema, validated } from "../../state/schema.js";
import { isPlainObject } from "../../state/shape.js";
import type { State } from "../../state/state.js";

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

const ANSWER = "pause: ";
const SLEEP = "sleep: ";
const DEADLINE = "deadline: ";
/** The key under which a visit remembers its failed attempts while it waits for the next one. */
export const RETRY = "retry: ";
const reserved = [ANSWER, SLEEP, DEADLINE, RETRY, DATA_COPY];

/** Whether a pause has timed out. */
export function isExpired(pause: PauseRequest): pause is PauseRequest & { deadline: string } {
  return pause.deadline !== undefined && now() >= Date.parse(pause.deadline);
}

/** The key under which a visit remembers the answer to one of its pauses. */
export function answerKey(name: string): string {
  return ANSWER + name;
}

/** The key under which a visit remembers when one of its pauses times out. */
export function deadlineKey(name: string): string {
  return DEADLINE + name;
}

/** The key under which a visit remembers when a sleep ends. */
export function sleepKey(name: string): string {
  return SLEEP + name;
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

/**
 * A paused State with its input applied: as answers if the node paused inside, otherwise in its data. Missing input
 * is taken from the answers that the run keeps.
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
): Promise<State<D>> {
  const { pauses, unfinished } = progressOf(state);
  refuseNeedless(pauses, input);
  const { taken, answers } = await collect(progressOf(state), input, schemas);
  if (unfinished === undefined) {
    let next = state;
    for (const pause of pauses) {
      const patch = taken.has(pause) ? toPatch(pause.into, taken.get(pause)) : onTimeoutOf(pause);
      if (patch !== undefined) next = next.merge(patch);
    }
    return withProgress(next, { pauses: noPauses, answers });
  }
  let { results } = unfinished;
  for (const [{ name }, value] of taken) results = results.with(answerKey(name), freezeCopy(value));
  // Marked opaque without a check of the answers: a pause is rare.
  const count = unfinished.count + taken.size;
  const next = Object.freeze({ ...unfinished, results, count, opaque: true });
  return withProgress(state, { unfinished: next, pauses: noPauses, answers });
}

function toPatch(into: string | undefined, value: unknown): object | undefined {
  if (value === undefined) return undefined;
  if (into !== undefined) return { [into]: value };
  if (typeof value === "object" && value !== null && isPlainObject(value)) return value;
  throw new ConfigError(
    "input",
    `must be an object to merge into the data; got ${show(value)}: or give the pause a key, "into"`,
  );
}

/** The changes that a timed-out pause makes to the data. */
function onTimeoutOf(pause: PauseRequest): object | undefined {
  if (!isExpired(pause)) return undefined;
  const { name, deadline, onTimeout } = pause;
  if (onTimeout !== undefined) return onTimeout;
  throw new PauseTimeoutError(name, deadline);
}

function refuseNeedless(pauses: readonly PauseRequest[], input: unknown): void {
  const stop = pauses.find(({ breakpoint }) => breakpoint !== undefined);
  const waits = pauses.every(({ until }) => until !== undefined) ? pauses[0] : undefined;
  if (input === undefined || (stop ?? waits) === undefined) return;
  const why = stop === undefined ? `waits (${waits?.reason})` : `stopped at a ${stop.reason}`;
  const problem = `was given, but the run only ${why}: resume it without input`;
  throw new ConfigError("input", problem);
}

/** The answers that the pauses of a run take, and those that are left. */
interface Taken {
  readonly taken: ReadonlyMap<PauseRequest, unknown>;
  readonly answers: readonly Answer[];
}

/** The answer to each pause that has one. A pause that asks for nothing is answered by any resume. */
async function collect(
  {
    pauses,
    answers: kept,
  }: { readonly pauses: readonly PauseRequest[]; readonly answers: readonly Answer[] },
  input: unknown,
  schemas: InputSchemas | undefined,
): Promise<Taken> {
  const isOnly = pauses.length === 1;
  const given = isOnly ? undefined : byName(pauses, input);
  const taken = new Map<PauseRequest, unknown>();
  const answers = [...kept];
  const missing: PauseRequest[] = [];
  for (const pause of pauses) {
    const has = given === undefined ? input !== undefined : Object.hasOwn(given, pause.name);
    const label = isOnly ? "input" : `input.${pause.name}`;
    let value = given === undefined ? input : has ? given[pause.name] : undefined;
    if (has && isExpired(pause)) throw new PauseTimeoutError(pause.name, pause.deadline);
    const at = has ? -1 : answerTo(pause, answers);
    if (at >= 0) value = answers.splice(at, 1)[0]?.value;
    else if (!has && needsAnswer(pause)) {
      if (!isExpired(pause)) missing.push(pause);
      continue;
    }
    const schema = schemaOf(schemas, pause.name);
    const answer: unknown = schema === undefined ? value : await validated(label, value, schema);
    encode(freezeCopy(answer), label);
    taken.set(pause, answer);
  }
  // Several pauses may be answered one at a time, and one that only waits for a set time may have reached it.
  const isNone =
    (given === undefined || Object.keys(given).length === 0) &&
    answers.length === kept.length &&
    !pauses.some((pause) => pause.until !== undefined || isExpired(pause));
  if (missing.length > 0 && isNone) throw unanswered(missing, isOnly);
  return { taken, answers: answers.length === kept.length ? kept : Object.freeze(answers) };
}

/** The index of the oldest answer to a pause; -1 if there is none. */
function answerTo(pause: PauseRequest, answers: readonly Answer[]): number {
  const isQuestion = pause.breakpoint === undefined && pause.until === undefined;
  return isQuestion ? answers.findIndex(({ name }) => name === pause.name) : -1;
}

/** A paused run without the answers that are not valid, and the error of the first of them. */
export interface Refused<D extends object> {
  readonly state: State<D>;
  readonly error: ConfigError | SchemaError;
}

/** Checks the kept answers to a run's open pauses; `undefined` if all are valid. */
export async function refusedAnswers<D extends object>(
  state: State<D>,
  schemas: InputSchemas | undefined,
): Promise<Refused<D> | undefined> {
  const { pauses, answers, unfinished } = progressOf(state);
  const bad = new Map<
    PauseRequest,
    { readonly answer: Answer; readonly error: Refused<D>["error"] }
  >();
  for (const pause of pauses) {
    const answer = answers[answerTo(pause, answers)];
    if (answer === undefined) continue;
    const schema = schemaOf(schemas, pause.name);
    try {
      const value: unknown = schema ? await validated("input", answer.value, schema) : answer.value;
      if (unfinished === undefined) toPatch(pause.into, value);
    } catch (error) {
      if (!(error instanceof SchemaError || error instanceof ConfigError)) throw error;
      bad.set(pause, { answer, error });
    }
  }
  const [first] = bad.values();
  if (first === undefined) return undefined;
  const dropped = new Set([...bad.values()].map(({ answer }) => answer));
  const asked = pauses.map((pause) => {
    const error = bad.get(pause)?.error;
    return error === undefined ? pause : Object.freeze({ ...pause, refused: error.message });
  });
  const left = answers.filter((answer) => !dropped.has(answer));
  const changes = { pauses: Object.freeze(asked), answers: Object.freeze(left) };
  return { state: withProgress(state, changes), error: first.error };
}

function needsAnswer({ ask, schema, deadline }: PauseRequest): boolean {
  return ask !== undefined || schema !== undefined || deadline !== undefined;
}

/** The input for several pauses, by name. */
function byName(
  pauses: readonly PauseRequest[],
  input: unknown,
): Readonly<Record<string, unknown>> {
  const names = pauses.map(({ name }) => show(name)).join(", ");
  if (input === undefined) return {};
  if (typeof input !== "object" || input === null || !isPlainObject(input)) {
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
