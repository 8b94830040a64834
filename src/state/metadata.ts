import { ConfigError, show } from "../errors.js";
import { type Metadata, noMetadata } from "./record.js";
import { isPlainObject } from "./shape.js";

/** The maximum size of metadata, in bytes of JSON: lists of runs carry it. */
const MAX_BYTES = 4096;

/** What a value of metadata must be. */
export const METADATA_VALUE = "a string, a finite number or a boolean";

/** The first key whose value metadata can't hold. */
export function wrongMetadata(metadata: object): string | undefined {
  return Object.entries(metadata).find(([, value]) => !isValue(value))?.[0];
}

function isValue(value: unknown): boolean {
  return typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
}

/** A frozen copy of metadata. */
export function keptMetadata(metadata: Metadata): Metadata {
  return Object.keys(metadata).length === 0 ? noMetadata : Object.freeze({ ...metadata });
}

/**
 * Throws if the value is not valid metadata.
 *
 * @throws ConfigError that names the option.
 */
export function checkMetadata(name: string, value: unknown): asserts value is Metadata {
  if (typeof value !== "object" || value === null || !isPlainObject(value)) {
    throw new ConfigError(name, `must be a plain object; got ${show(value)}`);
  }
  const wrong = wrongMetadata(value);
  if (wrong !== undefined) {
    throw new ConfigError(
      `${name}.${wrong}`,
      `must be ${METADATA_VALUE}; got ${show(value[wrong])}`,
    );
  }
  const bytes = new TextEncoder().encode(JSON.stringify(value)).length;
  if (bytes > MAX_BYTES) {
    throw new ConfigError(name, `must be at most ${MAX_BYTES} bytes of JSON; got ${bytes}`);
  }
}

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
