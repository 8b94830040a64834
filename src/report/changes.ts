import { looksTagged } from "../state/shape.js";

/** How one path differs between two trees. */
export interface PathChange {
  readonly op: "add" | "remove" | "change";
  /** Keys and indexes: `data.pages.0`. */
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/**
 * Every path at which two JSON trees differ, down to the single values, for people to read. A tagged value counts as one
 * value. (`difference` finds the shortest patch instead.)
 */
export function changesBetween(before: unknown, after: unknown, path = ""): PathChange[] {
  if (isSame(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) return itemChanges(before, after, path);
  const [one, other] = [fieldsOf(before), fieldsOf(after)];
  if (one !== undefined && other !== undefined) return fieldChanges(one, other, path);
  return [{ op: "change", path, before, after }];
}

type Fields = Readonly<Record<string, unknown>>;

function fieldChanges(before: Fields, after: Fields, path: string): PathChange[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return keys.flatMap((key) => {
    const at = path === "" ? key : `${path}.${key}`;
    if (!Object.hasOwn(before, key)) return [{ op: "add", path: at, after: after[key] } as const];
    if (!Object.hasOwn(after, key))
      return [{ op: "remove", path: at, before: before[key] } as const];
    return changesBetween(before[key], after[key], at);
  });
}

/** The fields of an object, or of a Map whose keys are strings; `undefined` for anything else, such as a Date. */
function fieldsOf(value: unknown): Fields | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const keys = Object.keys(value);
  if (!looksTagged(keys)) return value as Fields;
  const { $object, $map } = value as Fields;
  if ($object !== undefined) return $object as Fields;
  const entries = ($map ?? []) as readonly (readonly [unknown, unknown])[];
  if ($map === undefined || !entries.every(([key]) => typeof key === "string")) return undefined;
  return Object.fromEntries(entries);
}

/** Skips the items that both arrays share: at their start, at their end, and after a shift, as in a list of the newest. */
function itemChanges(
  before: readonly unknown[],
  after: readonly unknown[],
  path: string,
): PathChange[] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && isSame(before[start], after[start])) start++;
  let end = 0;
  while (end < shorter - start && isSame(before.at(-1 - end), after.at(-1 - end))) end++;
  const [gone, come] = [
    before.slice(start, -end || undefined),
    after.slice(start, -end || undefined),
  ];
  const shift = shiftBetween(gone, come);
  const isShifted = shift > 0;
  const changes: PathChange[] = gone
    .slice(0, shift)
    .map((item, index) => ({ op: "remove", path: `${path}.${start + index}`, before: item }));
  const first = isShifted ? gone.length - shift : 0;
  for (let index = first; index < Math.max(isShifted ? 0 : gone.length, come.length); index++) {
    const at = `${path}.${start + index}`;
    if (isShifted || index >= gone.length)
      changes.push({ op: "add", path: at, after: come[index] });
    else if (index >= come.length) changes.push({ op: "remove", path: at, before: gone[index] });
    else changes.push(...changesBetween(gone[index], come[index], at));
  }
  return changes;
}

/** How many items were removed at the start, if the rest is at the start of the other array; 0 if it is not. */
function shiftBetween(before: readonly unknown[], after: readonly unknown[]): number {
  const old = before.map((item) => JSON.stringify(item));
  const young = after.map((item) => JSON.stringify(item));
  return Math.max(
    0,
    old.findIndex(
      (item, shift) =>
        shift > 0 &&
        item === young[0] &&
        old.length - shift <= young.length &&
        old.slice(shift).every((text, index) => text === young[index]),
    ),
  );
}

function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object") return false;
  return JSON.stringify(one) === JSON.stringify(other);
}
