import { ConfigError, show } from "../errors.js";
import { isPlainObject, own } from "../state/own.js";
import type { PauseRequest } from "../state/record.js";
import { noPauses } from "../state/record.js";
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

/** The key under which a visit remembers the answer to one of its pauses. */
export function answerKey(name: string): string {
  return `pause ${name}`;
}

/**
 * A paused State with its input taken in: as answers, if the node waits inside, and else in its data.
 *
 * @throws ConfigError when there is no input and one is needed, or it is not what the schema wants.
 */
export async function answered<D extends object>(
  state: State<D>,
  given: { readonly input?: unknown },
  schemas: StandardSchema | Readonly<Record<string, StandardSchema>> | undefined,
): Promise<State<D>> {
  const { pauses, unfinished } = state;
  const answers = await collect(pauses, given, schemas);
  if (unfinished !== undefined) {
    const keys = [...answers].map(([{ name }, value]) => [answerKey(name), own(value)] as const);
    const results = Object.freeze({ ...unfinished.results, ...Object.fromEntries(keys) });
    const next = { ...unfinished, results, opaque: true };
    return State.progressed(state, { unfinished: Object.freeze(next), pauses: noPauses });
  }
  let next = state;
  for (const [{ into }, value] of answers) next = next.merge(toPatch(into, value) as object);
  return State.progressed(next, { pauses: noPauses });
}

function toPatch(into: string | undefined, value: unknown): object {
  if (into !== undefined) return { [into]: value };
  if (typeof value === "object" && value !== null && isPlainObject(value)) return value;
  throw new ConfigError(
    "input",
    `wants an object to merge into the data, got ${show(value)}: or give the pause a key, "into"`,
  );
}

/** The answer to each pause that got one. Several take an object with a value for each name. */
async function collect(
  pauses: readonly PauseRequest[],
  given: { readonly input?: unknown },
  schemas: StandardSchema | Readonly<Record<string, StandardSchema>> | undefined,
): Promise<Map<PauseRequest, unknown>> {
  const answers = new Map<PauseRequest, unknown>();
  const several = pauses.length > 1;
  for (const pause of pauses) {
    const has = several ? hasKey(given.input, pause.name) : given.input !== undefined;
    const label = several ? `input.${pause.name}` : "input";
    if (has) {
      const value = several ? Reflect.get(given.input as object, pause.name) : given.input;
      const schema = isSchema(schemas) ? schemas : schemas?.[pause.name];
      answers.set(pause, schema === undefined ? value : await validated(label, value, schema));
    } else if (!several && pause.ask !== undefined) {
      throw new ConfigError(
        "input",
        `is missing: the run is paused (${pause.reason}) and asks ${show(pause.ask)}`,
      );
    }
  }
  if (several && answers.size === 0) {
    const names = pauses.map(({ name }) => show(name)).join(", ");
    throw new ConfigError(
      "input",
      `wants an object with a value for one or more of ${names}, got ${show(given.input)}`,
    );
  }
  return answers;
}

function hasKey(value: unknown, key: string): boolean {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key);
}
