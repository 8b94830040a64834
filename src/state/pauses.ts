import {
  dataObject,
  dataValue,
  name,
  object,
  oneOf,
  optional,
  tagged,
  text,
  time,
} from "./kinds.js";

/** Something that a paused run is waiting for. */
export interface PauseRequest {
  /** Distinguishes several pauses; `""` for a node's only one. */
  readonly name: string;
  /** Why the run waits. */
  readonly reason: string;
  /** What a person is asked. If set, the run can't continue without an answer. */
  readonly ask?: unknown;
  /** The key of the data that receives the input; without it the input is merged into the data. */
  readonly into?: string;
  /** Set for a breakpoint of the config, which takes no input: before or after the node. */
  readonly breakpoint?: "before" | "after";
  /** When the run resumes by itself, ISO 8601, if it is only waiting for that. */
  readonly until?: string;
  /** The JSON Schema of the answer, if the pause has a schema whose library can produce one. */
  readonly schema?: object;
  /** When it times out, ISO 8601, if it has a timeout. */
  readonly deadline?: string;
  /** What is merged into the data if nobody answers by then. */
  readonly onTimeout?: object;
  /** Why the last answer was rejected. */
  readonly refused?: string;
}

/** An answer that arrived before its pause, or before the run was resumed. */
export interface Answer {
  /** The name of the pause. */
  readonly name: string;
  readonly value: unknown;
}

/** No pauses. */
export const noPauses: readonly PauseRequest[] = Object.freeze([]);

/** No pending answers. */
export const noAnswers: readonly Answer[] = Object.freeze([]);

/** A pause in a record. */
export const pause = object<PauseRequest, unknown>({
  name,
  reason: text,
  ask: optional(tagged("ask", dataValue)),
  into: optional(name),
  breakpoint: optional(oneOf(["before", "after"])),
  until: optional(time),
  schema: optional(tagged("schema", dataObject)),
  deadline: optional(time),
  onTimeout: optional(tagged("onTimeout", dataObject)),
  refused: optional(text),
});

/** An answer in a record. */
export const answer = object<Answer, unknown>({ name, value: tagged("value", dataValue) });

/** Whether a person can answer a pause: it is neither a breakpoint nor a wait until a given time. */
export function isAnswerable(pause: Pick<PauseRequest, "breakpoint" | "until">): boolean {
  return pause.breakpoint === undefined && pause.until === undefined;
}
