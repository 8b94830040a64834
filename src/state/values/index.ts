import { symbolOf } from "../shape.js";
import { sparseKind } from "./array.js";
import { bigintKind } from "./bigint.js";
import { bytesKind } from "./bytes.js";
import { dateKind } from "./date.js";
import { errorKind } from "./error.js";
import type { Kind } from "./kind.js";
import { mapKind } from "./map.js";
import { numberKind } from "./number.js";
import { taggedKind } from "./object.js";
import { regexpKind } from "./regexp.js";
import { registeredKind } from "./registered.js";
import { setKind } from "./set.js";
import { undefinedKind } from "./undefined.js";
import { urlKind } from "./url.js";

/** Every kind of value that JSON lacks. An object's kind is the first that matches. */
const kinds: readonly Kind[] = [
  undefinedKind,
  numberKind,
  bigintKind,
  taggedKind,
  sparseKind,
  registeredKind,
  dateKind,
  mapKind,
  setKind,
  regexpKind,
  urlKind,
  errorKind,
  bytesKind,
];

/** The kinds by their tags. */
export const byTag: ReadonlyMap<string, Kind> = new Map(kinds.map((kind) => [kind.tag, kind]));

// Those that have no type or prototype are under `undefined`, which no value has.

/** The kinds of primitives, by `typeof`. */
export const byType: ReadonlyMap<unknown, Kind> = new Map(kinds.map((kind) => [kind.type, kind]));

const byPrototype: ReadonlyMap<unknown, Kind> = new Map(
  kinds.map((kind) => [kind.prototype, kind]),
);

const tested = kinds.filter(({ is }) => is !== undefined);

/** The kind of an object that is neither an array nor an object literal. */
export function kindOf(value: object, prototype: unknown): Kind | undefined {
  if (registeredKind.is?.(value, prototype)) return registeredKind;
  return byPrototype.get(prototype) ?? tested.find(({ is }) => is?.(value, prototype));
}

/** A key added to a Date, a Map or the like, or a symbol key; a checkpoint can't hold it. */
export function strayKey(
  value: object,
  prototype: unknown,
  kind: Kind,
): string | symbol | undefined {
  if (kind === registeredKind) return undefined;
  const key = kind.prototype === prototype ? Object.keys(value)[0] : undefined;
  return (kind.symbols ? undefined : symbolOf(value)) ?? key;
}
