/*
 * What each kind of value must say of itself. A kind is one file, with the one list in `index.ts`; the
 * three walks are in `freeze-copy.ts`, `encode.ts` and `decode.ts`, and hand themselves to the kinds.
 */

/** Copies the parts of a value. */
export interface CopyWalk {
  /** @param before - what a State has had in its place. */
  copy(value: unknown, depth: number, before?: unknown): unknown;
  /** Says which copy a value gets, before its parts are copied: one of them may lead back to it. */
  begin(value: object, copy: object): void;
}

/** Writes the parts of a value as JSON. */
export interface EncodeWalk {
  encode(value: unknown): unknown;
  /** @param indexes - what the items are called in an error; 0, 1, 2 by default. */
  items(items: readonly unknown[], indexes?: readonly number[]): unknown[];
  fields(value: object, keys: readonly string[]): Record<string, unknown>;
}

/** Reads the parts of a value out of JSON. */
export interface DecodeWalk {
  decode(tree: unknown, depth: number): unknown;
  items(items: unknown[], depth: number): unknown[];
  fields(tree: Record<string, unknown>, depth: number): Record<string, unknown>;
  /** All that is known of a part that was read; see `json-traits.ts`. */
  known(value: unknown): number;
}

/** What a kind gives for content that it did not write. */
export const malformed = Symbol("malformed");

/** A kind of value: how it is recognised, copied, written and read. */
export interface Kind<T = unknown> {
  /** The key of the object with one key that stands for it in JSON. */
  readonly tag: string;
  /** What `typeof` says of it, if it is no object. */
  readonly type?: string;
  /** What it inherits from, where that identifies it. */
  readonly prototype?: object;
  /** Whether an object is of this kind, where it takes more to tell. */
  is?(value: object, prototype: unknown): boolean;
  /** Whether it can change although it is frozen. */
  readonly opaque?: true;
  /** Whether the platform gives it symbols of its own. */
  readonly symbols?: true;
  /** A frozen copy; only of objects. */
  copy?(value: T, walk: CopyWalk, depth: number): unknown;
  /** @throws Refusal if a checkpoint can't hold it. */
  encode(value: T, walk: EncodeWalk): unknown;
  /** @returns {@link malformed} for content that `encode` does not write. */
  decode(content: unknown, walk: DecodeWalk, depth: number): unknown;
}

/** What an action gives; {@link malformed} if it throws. */
export function attempt<T>(action: () => T): T | typeof malformed {
  try {
    return action();
  } catch {
    return malformed;
  }
}
