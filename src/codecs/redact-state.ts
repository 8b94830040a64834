import { type StateJSON, stateText } from "../state/json.js";
import type { UserText } from "../state/kinds.js";
import { looksTagged, setKey } from "../state/shape.js";
import { type Positions, REDACTED, type Secrets } from "./patterns.js";

/** The position of a walk in the patterns, and whether one has matched above. */
interface Place {
  readonly wanted: Positions;
  readonly hot: boolean;
  readonly userText: UserText;
}

/** A State's JSON without its secrets; the same object if it has none. */
export function redactState<T extends Partial<StateJSON>>(json: T, secrets: Secrets): T {
  return redactJSON(json, stateText, secrets);
}

/**
 * JSON without its secrets; the same object if it has none.
 *
 * @param userText - which of its text is the user's. The rest is what a load relies on, and stays.
 * @param known - caches the results for frozen trees, so that an unchanged one is searched once.
 */
export function redactJSON<T extends Partial<Pick<StateJSON, "error">>>(
  json: T,
  userText: UserText,
  secrets: Secrets,
  known?: WeakMap<object, unknown>,
): T {
  const top: Place = { wanted: secrets.start, hot: false, userText };
  return withoutStack(json, fields(json as unknown as Tree, top) as unknown as T);

  /** A value of the JSON. Tags of `encode` are treated as the values that they stand for. */
  function walk(tree: unknown, place: Place): unknown {
    if (place.userText === "fixed") return tree;
    if (typeof tree === "string") return secrets.clean(tree);
    if (typeof tree !== "object" || tree === null) return tree;
    if (place.hot || place.wanted.length > 0) return inside(tree, place);
    if (!secrets.hasExpressions) return tree;
    // No path leads further, so the result is the same wherever the tree is.
    const isCached = place.userText === "own" && known !== undefined && Object.isFrozen(tree);
    if (!isCached) return inside(tree, place);
    const before = known.get(tree);
    if (before !== undefined) return before;
    const made = inside(tree, place);
    known.set(tree, made);
    return made;
  }

  function inside(tree: object, place: Place): unknown {
    if (Array.isArray(tree)) return items(tree, place);
    const keys = Object.keys(tree);
    const tag = looksTagged(keys) ? keys[0] : undefined;
    return tag === undefined ? fields(tree as Tree, place) : tagged(tree as Tree, tag, place);
  }

  function at(tree: unknown, key: string, place: Place): unknown {
    const wanted = secrets.advance(place.wanted, key);
    const userText = textAt(place.userText, key);
    const hot = place.hot || wanted.hit;
    if (hot && userText === "own") return REDACTED;
    return walk(tree, { wanted: wanted.next, hot, userText });
  }

  function fields(tree: Tree, place: Place): Tree {
    let copy: Tree | undefined;
    const keys = Object.keys(tree);
    const cleaned = keys.map((key) => (isOwnKey(place.userText, key) ? secrets.clean(key) : key));
    const isRenamed = cleaned.some((key, index) => key !== keys[index]);
    // Then all keys are set anew, so that their order stays.
    if (isRenamed) copy = {};
    keys.forEach((key, index) => {
      const kept = at(tree[key], key, place);
      if (kept === tree[key] && !isRenamed) return;
      copy ??= { ...tree };
      const name = cleaned[index] ?? key;
      setKey(copy, name === key ? key : unused(name, copy, tree), kept);
    });
    return copy ?? tree;
  }

  function items(tree: readonly unknown[], place: Place, indexes?: readonly unknown[]): unknown {
    let copy: unknown[] | undefined;
    tree.forEach((item, index) => {
      const kept = at(item, String(indexes?.[index] ?? index), place);
      if (kept === item) return;
      copy ??= [...tree];
      copy[index] = kept;
    });
    return copy ?? tree;
  }

  function tagged(tree: Tree, tag: string, place: Place): unknown {
    const content = contentOf(tree[tag], tag, place);
    if (content === tree[tag]) return tree;
    // An incomplete instance might not load, and what is left of a URL may not be one.
    return tag === "$type" || typeof content === "string" ? REDACTED : { [tag]: content };
  }

  function contentOf(content: unknown, tag: string, place: Place): unknown {
    if (tag === "$object") return fields(content as Tree, place);
    if (tag === "$url") return walk(content, place);
    if (!Array.isArray(content)) return content;
    const parts: readonly unknown[] = content;
    switch (tag) {
      case "$set":
        return items(parts, place);
      case "$map":
        return same(parts, entriesOf(parts as readonly Entry[], place));
      case "$sparse":
        return same(parts, [
          parts[0],
          parts[1],
          items(parts[2] as unknown[], place, parts[1] as unknown[]),
        ]);
      case "$regexp":
        return secrets.clean(String(parts[0])) === parts[0] ? content : REDACTED;
      case "$type":
        return same(parts, [parts[0], walk(parts[1], place)]);
      case "$error":
        return same(parts, errorOf(parts, place));
      default:
        return content;
    }
  }

  function entriesOf(entries: readonly Entry[], place: Place): readonly Entry[] {
    const used = new Set(entries.map(([key]) => key));
    return entries.map((entry, index) => {
      const [key, value] = entry;
      const name = typeof key === "object" ? String(index) : String(key);
      const below = { ...place, wanted: secrets.advance(place.wanted, name).next };
      let kept = typeof key === "string" || typeof key === "object" ? walk(key, below) : key;
      if (typeof key === "string" && kept !== key) {
        kept = numbered(String(kept), (one) => used.has(one));
        used.add(kept);
      }
      return same(entry, [kept, at(value, name, place)]) as Entry;
    });
  }

  function errorOf(parts: readonly unknown[], place: Place): readonly unknown[] {
    const [type, name, message, stack, own] = parts;
    const kept = at(message, "message", place);
    // A stack contains the message.
    const trace = kept === message && at(stack, "stack", place) === stack ? stack : null;
    return [type, walk(name, place), kept, trace, fields(own as Tree, place)];
  }
}

/** Removes the stack of an error whose message was redacted, because it contains the message. */
function withoutStack<T extends Partial<Pick<StateJSON, "error">>>(before: T, after: T): T {
  if (after.error?.stack === undefined || after.error.message === before.error?.message) {
    return after;
  }
  const { stack: _stack, ...error } = after.error;
  return { ...after, error };
}

function textAt(userText: UserText, key: string): UserText {
  if (typeof userText === "string") return userText;
  const { fields, each = "own" } = userText;
  return fields !== undefined && Object.hasOwn(fields, key) ? (fields[key] ?? each) : each;
}

/** Whether the name of a field is the user's. */
function isOwnKey(userText: UserText, key: string): boolean {
  if (typeof userText === "string") return userText !== "fixed";
  return !userText.fixedKeys && !(userText.fields && Object.hasOwn(userText.fields, key));
}

/** A key that nothing else has: several secrets may become the same text. */
function unused(key: string, made: Tree, before: Tree): string {
  return numbered(key, (one) => Object.hasOwn(made, one) || Object.hasOwn(before, one));
}

function numbered(text: string, isUsed: (text: string) => boolean): string {
  let one = text;
  for (let number = 2; isUsed(one); number++) one = `${text} ${number}`;
  return one;
}

type Tree = Record<string, unknown>;
type Entry = readonly [unknown, unknown];

/** The old list if the new one has the same items. */
function same(before: readonly unknown[], after: readonly unknown[]): readonly unknown[] {
  return after.every((item, index) => item === before[index]) ? before : after;
}
