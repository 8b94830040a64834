import {
  ChainError,
  CheckpointConflictError,
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  type ClassName,
  ConfigError,
  type ErrorCode,
  ExecutionError,
  errorTable,
  GraphError,
  isWaymarkError,
  MigrationError,
  messageOf,
  ParallelError,
  PauseTimeoutError,
  RouteError,
  SchemaError,
  SerializationError,
  WaymarkError,
} from "../errors.js";
import { errorName } from "../run/loop/failure.js";
import { isFields } from "../state/shape.js";
import { type Failure, toKept } from "./job.js";

type ErrorClass = abstract new (...args: never[]) => WaymarkError;

const classes: Readonly<Record<ClassName<ErrorCode>, ErrorClass>> = {
  ...{ WaymarkError, ConfigError, SchemaError, GraphError, PauseTimeoutError, ExecutionError },
  ...{ ChainError, ParallelError, RouteError, SerializationError, MigrationError },
  ...{ CheckpointSaveError, CheckpointConflictError },
  ...{ CheckpointCorruptionError, CheckpointNotFoundError },
};

/** How much text of an error's fields a job keeps; one with more loses them. */
const MOST_FIELDS = 64 * 1024;

/** The class of a code; `undefined` for a code of another version. */
function classOf(code: string): ErrorClass | undefined {
  const known = Object.hasOwn(errorTable, code) ? errorTable[code as ErrorCode] : undefined;
  return known && classes[known.class as ClassName<ErrorCode>];
}

/** What a job keeps of the error that it failed with for good. */
export function failureOf(error: unknown): Failure {
  const failure = { name: toKept(errorName(error)), message: toKept(messageOf(error)) };
  if (!isWaymarkError(error)) return failure;
  const { code, message, name, help: _, ...own } = error;
  const Class = classOf(code);
  // Anyone can make a plain WaymarkError of any code. That of a run has a State, which is in the store.
  if (Class === undefined || !(error instanceof Class) || error instanceof ExecutionError) {
    return { ...failure, code };
  }
  const fields = textOf({ name, message, ...own });
  return fields === undefined ? { ...failure, code } : { ...failure, code, fields };
}

/** The fields of an error as JSON; `undefined` if they are too many, or what somebody has added can't be JSON. */
function textOf(fields: object): string | undefined {
  try {
    const text = JSON.stringify(fields);
    return text.length > MOST_FIELDS ? undefined : text;
  } catch {
    return undefined;
  }
}

/** The error of a job, of the class of its code; `undefined` if the job does not keep its fields. */
export function crossedError({ code = "", message, fields }: Failure) {
  const Class = classOf(code);
  const known = parsed(fields);
  if (Class === undefined || known === undefined) return undefined;
  const error = new WaymarkError(code as ErrorCode, message);
  // Made from its fields: not every constructor takes a message.
  for (const [key, value] of Object.entries(known)) {
    const enumerable = key !== "message";
    Object.defineProperty(error, key, { value, enumerable, configurable: true, writable: true });
  }
  return Object.setPrototypeOf(error, Class.prototype) as WaymarkError;
}

/** The fields of an error from their JSON; `undefined` if they are not there, or are something else. */
function parsed(fields: string | undefined): object | undefined {
  try {
    const tree: unknown = JSON.parse(fields ?? "");
    return isFields(tree) ? tree : undefined;
  } catch {
    return undefined;
  }
}
