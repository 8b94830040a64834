/**
 * The difference between two JSON trees, as patches in immer's format. A State is structurally shared, so its JSON is
 * too: where two trees hold the same object nothing is compared, and finding a difference costs as much as what changed
 * and the containers around it, not as much as the State.
 *
 * Only JSON is compared, never a Map or a Date: those are encoded by tags, see `encode.ts`. So a patch is plain JSON
 * too, and one rule covers all types.
 */
import { SerializationError } from "../errors.js";
import { setKey } from "../state/shape.js";

/** One change, as immer writes it: `add` in an array inserts, `remove` closes the gap. */
export interface Change {
  readonly op: "add" | "remove" | "replace";
  /** Keys and indexes from the root down; an array's `length` can be replaced too, to cut it off. */
  readonly path: readonly (string | number)[];
  /** The new value; absent for `remove`. */
  readonly value?: unknown;
}

type Path = readonly (string | number)[];
type Fields = Readonly<Record<string, unknown>>;

/** About how many bytes a change takes besides its value. */
const CHANGE_BYTES = 40;

/**
 * The changes that turn `before` into `after`, in the order in which they apply. Both must be JSON, as `JSON.parse`
 * returns it, without cycles.
 */
export function difference(before: unknown, after: unknown): Change[] {
  const changes: Change[] = [];
  collect(before, after, [], changes);
  return changes;
}

/**
 * The same for two records, whose own fields may come in any order: a field that appears or disappears before others
 * must not replace the whole record.
 */
export function recordDifference(before: object, after: object): Change[] {
  const changes: Change[] = [];
  collectFields(before as Fields, after as Fields, [], changes, true);
  return changes;
}

/** The current path of the walk; each change gets a copy of it. */
type MutablePath = (string | number)[];

function collect(before: unknown, after: unknown, place: MutablePath, changes: Change[]): void {
  if (before === after) return;
  const first = changes.length;
  const done = collectInside(before, after, place, changes);
  const bytes = (changes.length - first) * CHANGE_BYTES;
  // Many small changes can take more bytes than the whole value.
  if (done && (bytes <= CHANGE_BYTES || bytes <= CHANGE_BYTES + weigh(after, bytes))) return;
  changes.length = first;
  changes.push({ op: "replace", path: place.slice(), value: after });
}

/** Collects the changes inside a container; returns `false` if the container has to be replaced as a whole. */
function collectInside(
  before: unknown,
  after: unknown,
  place: MutablePath,
  changes: Change[],
): boolean {
  if (typeof before !== "object" || typeof after !== "object") return false;
  if (before === null || after === null) return false;
  if (Array.isArray(before) !== Array.isArray(after)) return false;
  if (Array.isArray(before)) {
    collectItems(before, after as unknown[], place, changes);
    return true;
  }
  return collectFields(before as Fields, after as Fields, place, changes);
}

/** Collects the changes at a key or an index. */
function collectAt(
  key: string | number,
  before: unknown,
  after: unknown,
  place: MutablePath,
  changes: Change[],
): void {
  place.push(key);
  collect(before, after, place, changes);
  place.pop();
}

/** @param inAnyOrder - whether the result may have its keys in another order than `after`. */
function collectFields(
  before: Fields,
  after: Fields,
  place: MutablePath,
  changes: Change[],
  inAnyOrder = false,
): boolean {
  const keys = Object.keys(after);
  const old = Object.keys(before);
  const stays = areSame(old, keys) ? old : old.filter((key) => Object.hasOwn(after, key));
  if (stays !== old) {
    if (!inAnyOrder && !isReachable(stays, keys)) return false;
    for (const key of old) {
      if (!Object.hasOwn(after, key)) changes.push({ op: "remove", path: [...place, key] });
    }
  }
  for (const key of keys) {
    const value = after[key];
    if (stays !== old && !Object.hasOwn(before, key)) {
      changes.push({ op: "add", path: [...place, key], value });
    } else if (before[key] !== value) {
      collectAt(key, before[key], value, place, changes);
    }
  }
  return true;
}

function areSame(old: readonly string[], keys: readonly string[]): boolean {
  if (old.length !== keys.length) return false;
  for (let at = 0; at < old.length; at++) if (old[at] !== keys[at]) return false;
  return true;
}

/** Whether adding keys results in this order: new keys come last, except for indexes, which sort themselves. */
function isReachable(stays: readonly string[], keys: readonly string[]): boolean {
  if (stays.every((key, index) => keys[index] === key)) return true;
  const named = keys.filter((key) => !isIndexKey(key));
  return stays.filter((key) => !isIndexKey(key)).every((key, index) => named[index] === key);
}

function isIndexKey(key: string): boolean {
  return /^(0|[1-9]\d{0,9})$/.test(key) && Number(key) < 2 ** 32 - 1;
}

/**
 * The same for arrays: a common beginning and end stay, and what is in between is compared from left to
 * right. An item that only one side has was added or removed; where both have one that the other lacks, one
 * became the other.
 */
function collectItems(
  before: readonly unknown[],
  after: readonly unknown[],
  place: MutablePath,
  changes: Change[],
): void {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && isSame(before[start], after[start])) start++;
  let [oldEnd, newEnd] = [before.length, after.length];
  while (oldEnd > start && newEnd > start && isSame(before[oldEnd - 1], after[newEnd - 1])) {
    oldEnd--;
    newEnd--;
  }
  if (oldEnd === start + 1 && newEnd === start + 1) {
    collectAt(start, before[start], after[start], place, changes);
    return;
  }
  const dropped = droppedFrom(before, start, oldEnd, after, newEnd);
  for (let count = 0; count < dropped; count++) {
    changes.push({ op: "remove", path: [...place, start] });
  }
  const isMixed = dropped === 0 && start < oldEnd && start < newEnd;
  const had = isMixed ? namesIn(before, start, oldEnd) : undefined;
  const has = isMixed ? namesIn(after, start, newEnd) : undefined;
  let old = dropped === 0 ? start : oldEnd;
  let at = dropped === 0 ? start : oldEnd - dropped;
  while (old < oldEnd && at < newEnd) {
    const [was, is] = [before[old], after[at]];
    const isGone = !isSame(was, is) && !has?.has(itemName(was));
    const isNew = !isSame(was, is) && !had?.has(itemName(is));
    if (isNew && !isGone) {
      changes.push({ op: "add", path: [...place, at++], value: is });
    } else if (isGone && !isNew) {
      changes.push({ op: "remove", path: [...place, at] });
      old++;
    } else {
      // The same, or one became the other; an item that only moved is written like a new one.
      collectAt(at++, was, is, place, changes);
      old++;
    }
  }
  for (; at < newEnd; at++) changes.push({ op: "add", path: [...place, at], value: after[at] });
  const cut = oldEnd - old;
  if (cut > 1 && newEnd === after.length && oldEnd === before.length) {
    changes.push({ op: "replace", path: [...place, "length"], value: newEnd });
  } else {
    for (let count = 0; count < cut; count++) changes.push({ op: "remove", path: [...place, at] });
  }
}

/**
 * The number of items dropped at the start if all old items after them are kept, as in a list of the newest
 * N; otherwise 0. Found without the names of all items, which would be most of the work for such a list.
 */
function droppedFrom(
  before: readonly unknown[],
  start: number,
  oldEnd: number,
  after: readonly unknown[],
  newEnd: number,
): number {
  if (start === newEnd) return 0;
  let first = start + 1;
  while (first < oldEnd && !isSame(before[first], after[start])) first++;
  const kept = oldEnd - first;
  if (kept <= 0 || kept > newEnd - start) return 0;
  for (let count = 1; count < kept; count++) {
    if (!isSame(before[first + count], after[start + count])) return 0;
  }
  return first - start;
}

/** Whether two items are the same. The entries of a Map are new each time; their keys and values are not. */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (!Array.isArray(one) || !Array.isArray(other)) return false;
  return one.length === 2 && other.length === 2 && one[0] === other[0] && one[1] === other[1];
}

/** The names of some items. Not by `slice`, which is slow on frozen arrays. */
function namesIn(items: readonly unknown[], start: number, end: number): Set<unknown> {
  const names = new Set<unknown>();
  for (let at = start; at < end; at++) names.add(itemName(items[at]));
  return names;
}

/** Identifies an item: an entry of a Map by its key, any other by itself. */
function itemName(item: unknown): unknown {
  return Array.isArray(item) && item.length === 2 && typeof item[0] !== "object" ? item[0] : item;
}

/** About how many bytes a value takes as JSON; stops counting above `limit`. */
export function weigh(value: unknown, limit = Number.POSITIVE_INFINITY): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 6;
  let bytes = 2;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && bytes <= limit; at++) {
      bytes += 1 + weigh(value[at], limit - bytes);
    }
    return bytes;
  }
  for (const key in value) {
    if (bytes > limit) break;
    bytes += key.length + 4 + weigh((value as Fields)[key], limit - bytes);
  }
  return bytes;
}

/**
 * Applies the changes to a tree. It mutates both arguments: pass trees that nobody else holds, fresh from `JSON.parse`.
 *
 * @throws SerializationError if a change does not fit the tree.
 */
export function apply(tree: unknown, changes: readonly Change[]): unknown {
  let root = tree;
  for (let index = 0; index < changes.length; ) {
    const change = changes[index] ?? refusePatch([], "is missing");
    const { path } = change;
    const key = path.at(-1);
    if (key === undefined) {
      root =
        change.op === "replace" ? change.value : refusePatch(path, "can only replace the root");
      index++;
      continue;
    }
    const parent = containerAt(root, path);
    const run = Array.isArray(parent) ? runOf(changes, index) : 1;
    if (Array.isArray(parent)) applyItems(parent, key, changes.slice(index, index + run));
    else applyField(parent, String(key), change);
    index += run;
  }
  return root;
}

/** The number of changes, from this one on, that insert consecutive items, or remove them. */
function runOf(changes: readonly Change[], first: number): number {
  const { op, path } = changes[first] as Change;
  const from = path.at(-1);
  if (op === "replace" || typeof from !== "number") return 1;
  let count = 1;
  for (; ; count++) {
    const next = changes[first + count];
    if (next?.op !== op || next.path.length !== path.length) return count;
    if (next.path.at(-1) !== (op === "add" ? from + count : from)) return count;
    if (next.path.some((key, at) => at < path.length - 1 && key !== path[at])) return count;
  }
}

function applyItems(items: unknown[], key: string | number, run: readonly Change[]): void {
  const [change] = run;
  if (change === undefined) return;
  const { op, path, value } = change;
  if (key === "length" && op === "replace") {
    if (!isIndex(value, items.length)) refusePatch(path, "can't make an array longer");
    items.length = Number(value);
    return;
  }
  const last = op === "add" ? items.length : items.length - (op === "remove" ? run.length : 1);
  if (!isIndex(key, last)) refusePatch(path, `has no place in an array of ${items.length}`);
  const at = Number(key);
  if (op === "replace") items[at] = value;
  else if (op === "remove") items.splice(at, run.length);
  else insert(items, at, run);
}

/** In pieces, because a call takes a limited number of arguments. */
function insert(items: unknown[], at: number, run: readonly Change[]): void {
  const PIECE = 4096;
  for (let from = 0; from < run.length; from += PIECE) {
    items.splice(at + from, 0, ...run.slice(from, from + PIECE).map(({ value }) => value));
  }
}

function applyField(fields: object, key: string, { op, path, value }: Change): void {
  if (op !== "add" && !Object.hasOwn(fields, key)) refusePatch(path, "is not there");
  if (op === "remove") Reflect.deleteProperty(fields, key);
  else setKey(fields, key, value);
}

/** The container of the last key of a path. Only own keys are followed, so nothing outside the tree is reached. */
function containerAt(root: unknown, path: Path): object {
  let node = root;
  for (let depth = 0; ; depth++) {
    if (typeof node !== "object" || node === null) return refusePatch(path, "leads nowhere");
    if (depth === path.length - 1) return node;
    const key = String(path[depth]);
    if (!Object.hasOwn(node, key)) return refusePatch(path, "leads nowhere");
    node = Reflect.get(node, key);
  }
}

function isIndex(value: unknown, last: number): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= last;
}

function refusePatch(path: Path, problem: string): never {
  throw new SerializationError(`patch ${path.join(".")}`, problem);
}
