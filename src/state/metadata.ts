import { type Check, check, refuseOption } from "../options.js";
import { byName, type Kind, scalar } from "./kinds.js";
import { isPlainObject } from "./shape.js";

/** Small values that a caller attaches to a run: saved with every checkpoint, for listing and filtering. */
export interface Metadata {
  /** A value by name. */
  readonly [key: string]: string | number | boolean;
}

/** No metadata. */
export const noMetadata: Metadata = Object.freeze({});

/** The maximum size of metadata, in bytes of JSON: lists of runs carry it. */
const MAX_BYTES = 4096;

/** A value of metadata. */
const oneValue = check(
  "a string, a finite number or a boolean",
  (value) => typeof value === "string" || typeof value === "boolean" || Number.isFinite(value),
);

const plainObject = check("a plain object", isPlainObject);

/** A frozen copy of metadata. */
export function keptMetadata(metadata: Metadata): Metadata {
  return Object.freeze({ ...metadata });
}

/** The metadata of a run in its record. */
export const metadata: Kind<Metadata> = byName(scalar<Metadata[string]>("own", oneValue));

/** Checks metadata from a caller. */
export const checkMetadata: Check = (name, value, refuse = refuseOption) => {
  plainObject(name, value, refuse);
  for (const [key, one] of Object.entries(value as object)) {
    oneValue(`${name}.${key}`, one, refuse);
  }
  const bytes = new TextEncoder().encode(JSON.stringify(value)).length;
  if (bytes > MAX_BYTES) refuse(name, `must be at most ${MAX_BYTES} bytes of JSON; got ${bytes}`);
};
