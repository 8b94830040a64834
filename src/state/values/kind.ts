/*
 * What each kind of value must define. A kind is one file and one entry in the list in `index.ts`; the three
 * walks are in `freeze-copy.ts`, `encode.ts` and `decode.ts`, and pass themselves to the kinds.
 */

/** Copies the parts of a value. */
export interface CopyWalk {
  /** @param before - the State's previous value in this place. */
  copy(value: unknown, depth: number, before?: unknown): unknown;
  /** Registers the copy of a value before its parts are copied: one of them may refer back to it. */
  begin(value: object, copy: object): void;
}

/** Writes the parts of a value as JSON. */
export interface EncodeWalk {
  encode(value: unknown): unknown;
  /** @param indexes - the indexes of the items in error paths; 0, 1, 2… by default. */
  items(items: readonly unknown[], indexes?: readonly number[]): unknown[];
  fields(value: object, keys: readonly string[]): Record<string, unknown>;
}

/** Reads the parts of a value from JSON. */
export interface DecodeWalk {
  decode(tree: unknown, depth: number): unknown;
  items(items: unknown[], depth: number): unknown[];
  fields(tree: Record<string, unknown>, depth: number): Record<string, unknown>;
  /** The traits and levels of a part that was read; see `json-traits.ts`. */
  known(value: unknown): number;
}

/** What a kind returns for content that it did not write. */
export const malformed = Symbol("malformed");

/** A kind of value: how it is recognized, copied, written and read. */
export interface Kind<T = unknown> {
  /** The only key of the object that represents it in JSON. */
  readonly tag: string;
  /** Its `typeof`, if it is a primitive. */
  readonly type?: string;
  /** Its prototype, if that identifies it. */
  readonly prototype?: object;
  /** Whether an object is of this kind, if the prototype does not identify it. */
  is?(value: object, prototype: unknown): boolean;
  /** Whether it can't be frozen. */
  readonly opaque?: true;
  /** Whether the platform adds symbol keys to it. */
  readonly symbols?: true;
  /** A frozen copy; objects only. */
  copy?(value: T, walk: CopyWalk, depth: number): unknown;
  /** @throws Refusal if a checkpoint can't hold it. */
  encode(value: T, walk: EncodeWalk): unknown;
  /** @returns {@link malformed} for content that `encode` does not write. */
  decode(content: unknown, walk: DecodeWalk, depth: number): unknown;
}

/** The result of an action; {@link malformed} if it throws. */
export function attempt<T>(action: () => T): T | typeof malformed {
  try {
    return action();
  } catch {
    return malformed;
  }
}
