import {
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  type ClassName,
  ConfigError,
  type ErrorCode,
  errorTable,
  GraphError,
  isWaymarkError,
  MigrationError,
  messageOf,
  PauseTimeoutError,
  SchemaError,
  SerializationError,
  WaymarkError,
} from "../errors.js";
import { errorName } from "../run/loop/failure.js";
import { type Failure, toKept } from "./job.js";

/** How an error of a class crosses the queue. */
interface Crossing {
  /** Its fields, besides the code and the message. */
  readonly fields: readonly string[];
  /** Makes it again. */
  make(fields: object, message: string, code: ErrorCode): WaymarkError;
}

function crossing<E extends WaymarkError, F extends keyof E & string>(
  _class: new (...args: never[]) => E,
  fields: readonly F[],
  make: (fields: Pick<E, F>, message: string, code: E["code"]) => E,
): Crossing {
  return { fields, make };
}

/** These never end a job for good: `source.ts` makes the first two, and the others are only their cause, or retried. */
type NeverCrosses =
  | "ExecutionError"
  | "CheckpointSaveError"
  | "ChainError"
  | "ParallelError"
  | "RouteError"
  | "CheckpointConflictError";

const crossings: Readonly<Record<Exclude<ClassName<ErrorCode>, NeverCrosses>, Crossing>> = {
  WaymarkError: crossing(WaymarkError, [], (_, message, code) => new WaymarkError(code, message)),
  GraphError: crossing(GraphError, [], (_, message, code) => new GraphError(code, message)),
  CheckpointNotFoundError: crossing(
    CheckpointNotFoundError,
    ["runId", "step", "checkpointId"],
    (at, message) => {
      const plain = new CheckpointNotFoundError(at.runId, at);
      const hint = message.slice(`${plain.message}; `.length);
      return hint === "" ? plain : new CheckpointNotFoundError(at.runId, at, hint);
    },
  ),
  CheckpointCorruptionError: crossing(
    CheckpointCorruptionError,
    ["expected", "actual"],
    (hashes, message) => new CheckpointCorruptionError(message, hashes),
  ),
  SerializationError: crossing(SerializationError, ["path"], ({ path }, message) =>
    withProblem(message, (problem) => new SerializationError(path, problem)),
  ),
  MigrationError: crossing(MigrationError, ["from", "to"], ({ from, to }, message) =>
    withProblem(message, (problem) => new MigrationError(from, to, problem)),
  ),
  SchemaError: crossing(
    SchemaError,
    ["subject", "issues"],
    ({ subject, issues }) => new SchemaError(subject, issues),
  ),
  PauseTimeoutError: crossing(
    PauseTimeoutError,
    ["pause", "deadline"],
    ({ pause, deadline }) => new PauseTimeoutError(pause, deadline),
  ),
  ConfigError: crossing(ConfigError, ["option"], ({ option }, message) =>
    withProblem(message, (problem) => new ConfigError(option, problem)),
  ),
};

/** An error whose class composes its message from its fields and, last, the problem. */
function withProblem<E extends Error>(message: string, make: (problem: string) => E): E {
  return make(message.slice(make("").message.length));
}

function crossingOf(code: string): Crossing | undefined {
  const table: Readonly<Record<string, Crossing>> = crossings;
  return table[errorTable[code as ErrorCode]?.class];
}

/** What a job keeps of the error that it failed with for good. */
export function failureOf(error: unknown): Failure {
  const failure = { name: toKept(errorName(error)), message: toKept(messageOf(error)) };
  if (!isWaymarkError(error)) return failure;
  const { code } = error;
  const names = crossingOf(code)?.fields;
  // Anyone can make a plain WaymarkError of any code.
  if (names?.every((name) => name in error) !== true) return { ...failure, code };
  const fields = Object.fromEntries(names.map((name) => [name, Reflect.get(error, name)]));
  return { ...failure, code, fields: JSON.stringify(fields) };
}

/** The error of a job, of the class of its code; `undefined` if the job does not keep enough of it. */
export function crossedError({ code = "", message, fields }: Failure): WaymarkError | undefined {
  const crossed = crossingOf(code);
  if (crossed === undefined) return undefined;
  // Workers of older versions kept no fields.
  if (fields === undefined && crossed.fields.length > 0) return undefined;
  return crossed.make(JSON.parse(fields ?? "{}"), message, code as ErrorCode);
}
