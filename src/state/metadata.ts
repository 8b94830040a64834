import { type Check, check, type Refuse, refuseOption } from "../options.js";
import { fieldsOf, type Kind, refuseJSON } from "./kinds.js";
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
const scalar = check(
  "a string, a finite number or a boolean",
  (value) => typeof value === "string" || typeof value === "boolean" || Number.isFinite(value),
);

const plainObject = check("a plain object", isPlainObject);

/** A frozen copy of metadata. */
export function keptMetadata(metadata: Metadata): Metadata {
  return Object.keys(metadata).length === 0 ? noMetadata : Object.freeze({ ...metadata });
}

/** The metadata of a run in its record. */
export const metadata: Kind<Metadata> = {
  userText: { each: "own" },
  read: (json, path, key) => {
    const at = `${path}.${key}`;
    const found = fieldsOf(json, at) as Metadata;
    checkValues(at, found, refuseJSON);
    return keptMetadata(found);
  },
};

function checkValues(name: string, values: object, refuse: Refuse): void {
  for (const [key, value] of Object.entries(values)) scalar(`${name}.${key}`, value, refuse);
}

/** Checks metadata from a caller. */
export const checkMetadata: Check = (name, value, refuse = refuseOption) => {
  plainObject(name, value, refuse);
  checkValues(name, value as object, refuse);
  const bytes = new TextEncoder().encode(JSON.stringify(value)).length;
  if (bytes > MAX_BYTES) refuse(name, `must be at most ${MAX_BYTES} bytes of JSON; got ${bytes}`);
};

/** Metadata, and which of its keys come from the graph. */
export interface MergedMetadata {
  readonly metadata: Metadata;
  readonly inherited: readonly string[];
}

/**
 * A run's metadata combined with that of the graph that runs it now. The run's own values stay; those from an
 * earlier graph are replaced.
 *
 * @throws ConfigError if both together are too large.
 */
export function mergedMetadata(run: MergedMetadata, graph: Metadata): MergedMetadata {
  const { metadata, inherited } = run;
  const ofGraph = new Set(inherited);
  const isOwn = (key: string): boolean => Object.hasOwn(metadata, key) && !ofGraph.has(key);
  const added = Object.entries(graph).filter(([key]) => !isOwn(key));
  if (added.every(([key, value]) => ofGraph.has(key) && metadata[key] === value)) return run;
  const merged = { ...metadata, ...Object.fromEntries(added) };
  checkMetadata("metadata", merged);
  for (const [key] of added) ofGraph.add(key);
  return { metadata: keptMetadata(merged), inherited: Object.freeze([...ofGraph]) };
}
