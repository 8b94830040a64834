import { ConfigError, show } from "../errors.js";
import { type Check, text } from "../options.js";
import { encode } from "../state/encode.js";
import { own } from "../state/own.js";
import { noPauses, type PauseRequest } from "../state/record.js";
import { isPlainObject } from "../state/shape.js";
import { State } from "../state/state.js";
import { isSchema, type StandardSchema, validated } from "./schema.js";

/** Thrown through a node that pauses inside; the loop turns it into a paused run. */
export class PauseSignal extends Error {
  /** What the node waits for. */
  readonly requests: readonly PauseRequest[];

  constructor(requests: readonly PauseRequest[]) {
    super(`the run pauses: ${requests.map(({ reason }) => reason).join(", ")}`);
    this.name = "PauseSignal";
    this.requests = requests;
  }
}

/** What a node waits for: what it asked for itself, and what it threw. */
export function pausesOf(error: unknown, asked: readonly PauseRequest[]): readonly PauseRequest[] {
  if (!(error instanceof PauseSignal)) return asked;
  const names = new Set(asked.map(({ name }) => name));
  return [...asked, ...error.requests.filter(({ name }) => !names.has(name))];
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
    `is 0, so a run that pauses (${reason}) could never go on: set it to 1 or more`,
  );
}

const END_OF_TIME = 8.64e15;

/** The pause of a run that goes on by itself at a moment. */
export function waitUntil(name: string, until: number): PauseRequest {
  const moment = new Date(Math.min(until, END_OF_TIME)).toISOString();
  return Object.freeze({ name, reason: `${name} until ${moment}`, until: moment });
}

const ANSWER = "pause: ";
const SLEEP = "sleep: ";
/** The key under which a visit remembers its attempts that failed, while it waits for the next. */
export const RETRY = "retry: ";
const reserved = [ANSWER, SLEEP, RETRY];

/** The key under which a visit remembers the answer to one of its pauses. */
export function answerKey(name: string): string {
  return ANSWER + name;
}

/** The key under which a visit remembers when a sleep ends. */
export function sleepKey(name: string): string {
  return SLEEP + name;
}

/** A key of a node's own, which is none of ours. */
export const workKey: Check = (name, value) => {
  text(name, value);
  const prefix = reserved.find((one) => String(value).startsWith(one));
  if (prefix === undefined) return;
  throw new ConfigError(name, `can't begin with "${prefix}", which the keys of the run itself do`);
};

/** What checks the input of a node's pauses: all of them, or each by its name. */
export type InputSchemas = StandardSchema | Readonly<Record<string, StandardSchema>>;

/**
 * A paused State with its input taken in: as answers, if the node waits inside, and else in its data.
 *
 * @throws ConfigError when an input is needed and missing, or given and not needed, or not what the
 * schema wants.
 * @throws SerializationError when a checkpoint can't hold it.
 */
export async function answered<D extends object>(
  state: State<D>,
  input: unknown,
  schemas: InputSchemas | undefined,
): Promise<State<D>> {
  const { pauses, unfinished } = state;
  refuseNeedless(pauses, input);
  const answers = await collect(pauses, input, schemas);
  if (unfinished === undefined) {
    let next = state;
    for (const [{ into }, value] of answers) {
      if (value !== undefined) next = next.merge(toPatch(into, value));
    }
    return State.progressed(next, { pauses: noPauses });
  }
  let { results } = unfinished;
  for (const [{ name }, value] of answers) results = results.with(answerKey(name), own(value));
  // Whether an answer can be frozen is not looked at: a pause is rare.
  const count = unfinished.count + answers.size;
  const next = Object.freeze({ ...unfinished, results, count, opaque: true });
  return State.progressed(state, { unfinished: next, pauses: noPauses });
}

function toPatch(into: string | undefined, value: unknown): object {
  if (into !== undefined) return { [into]: value };
  if (typeof value === "object" && value !== null && isPlainObject(value)) return value;
  throw new ConfigError(
    "input",
    `wants an object to merge into the data, got ${show(value)}: or give the pause a key, "into"`,
  );
}

function refuseNeedless(pauses: readonly PauseRequest[], input: unknown): void {
  const stop = pauses.find(({ breakpoint }) => breakpoint !== undefined);
  const waits = pauses.every(({ until }) => until !== undefined) ? pauses[0] : undefined;
  if (input === undefined || (stop ?? waits) === undefined) return;
  const why = stop === undefined ? `waits (${waits?.reason})` : `stopped at a ${stop.reason}`;
  const problem = `was given, but the run only ${why}: resume it without input`;
  throw new ConfigError("input", problem);
}

/** The answer to each pause that has one. One that asks for nothing has its answer as soon as the run is resumed. */
async function collect(
  pauses: readonly PauseRequest[],
  input: unknown,
  schemas: InputSchemas | undefined,
): Promise<Map<PauseRequest, unknown>> {
  const isOnly = pauses.length === 1;
  const given = isOnly ? undefined : byName(pauses, input);
  const answers = new Map<PauseRequest, unknown>();
  const missing: PauseRequest[] = [];
  for (const pause of pauses) {
    const has = given === undefined ? input !== undefined : Object.hasOwn(given, pause.name);
    if (!has && pause.ask !== undefined) {
      missing.push(pause);
      continue;
    }
    const label = isOnly ? "input" : `input.${pause.name}`;
    const value = given === undefined ? input : has ? given[pause.name] : undefined;
    const schema = schemaOf(schemas, pause.name);
    const answer: unknown = schema === undefined ? value : await validated(label, value, schema);
    encode(own(answer), label);
    answers.set(pause, answer);
  }
  // Several may be answered one after the other, each as it comes.
  // And where some only wait for a moment, that moment may have come.
  const isNone =
    (given === undefined || Object.keys(given).length === 0) &&
    pauses.every(({ until }) => until === undefined);
  if (missing.length > 0 && isNone) throw unanswered(missing, isOnly);
  return answers;
}

/** The input for several pauses, by their names. */
function byName(
  pauses: readonly PauseRequest[],
  input: unknown,
): Readonly<Record<string, unknown>> {
  const names = pauses.map(({ name }) => show(name)).join(", ");
  if (input === undefined) return {};
  if (typeof input !== "object" || input === null || !isPlainObject(input)) {
    const problem = `wants an object with a value for one or more of ${names}, got ${show(input)}`;
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
