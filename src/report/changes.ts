import { looksTagged } from "../state/shape.js";

/** What is at one path in two trees. */
export interface PathChange {
  readonly op: "add" | "remove" | "change";
  /** Keys and indexes: `data.pages.0`. */
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/**
 * Every path at which two trees of JSON differ, for people: down to the values, each with what was
 * there. What a tag stands for is seen as one value. (`difference` finds the changes that are shortest to write, which are others.)
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

/** What has keys: an object, or a Map whose keys are texts; `undefined` for all else, a Date for example. */
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

/** What is the same at the beginning and at the end of both arrays is passed over. */
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
  const changes: PathChange[] = [];
  for (let index = 0; index < Math.max(gone.length, come.length); index++) {
    const at = `${path}.${start + index}`;
    if (index >= gone.length) changes.push({ op: "add", path: at, after: come[index] });
    else if (index >= come.length) changes.push({ op: "remove", path: at, before: gone[index] });
    else changes.push(...changesBetween(gone[index], come[index], at));
  }
  return changes;
}

function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object") return false;
  return JSON.stringify(one) === JSON.stringify(other);
}
