import type { StateJSON } from "../state/json.js";
import { looksTagged, setKey } from "../state/shape.js";
import { Patterns, type Positions, REDACTED, type Secrets } from "./patterns.js";

/** The parts of a State that are the user's own. The rest has a shape that a load relies on, and stays. */
const free = new Patterns([
  "data.*",
  "metadata.*",
  "error.message",
  "error.stack",
  "unfinished.results.*",
  "pauses.*.reason",
  "pauses.*.ask",
  "pauses.*.ask.*",
  "begun.items.*.0",
  "steps.*.items.*.0",
  "pauses.*.refused",
  "pauses.*.onTimeout.*",
  "answers.*.value",
  "answers.*.value.*",
  "ledger.decisions.*.type",
  "ledger.decisions.*.description",
  "ledger.decisions.*.rationale",
  "ledger.decisions.*.alternatives.*",
  "ledger.agents.*.type",
  "ledger.agents.*.status",
  "ledger.agents.*.blockers.*",
  "ledger.agents.*.lastDecision",
  "ledger.agents.*.outputRef",
  "ledger.agents.*.state",
  "ledger.agents.*.state.*",
  "ledger.outputs.*.ref",
  "ledger.outputs.*.ref.*",
]);

/** The position of a walk in both lists of patterns, and whether a pattern has matched above. */
interface WalkState {
  readonly wanted: Positions;
  readonly free: Positions;
  readonly hot: boolean;
  /** Whether this is the user's own. */
  readonly own: boolean;
}

/**
 * A State's JSON without its secrets; the same object if it has none.
 *
 * @param known - caches the results for frozen trees, so that an unchanged one is searched once.
 */
export function redactState<T extends Partial<StateJSON>>(
  json: T,
  secrets: Secrets,
  known?: WeakMap<object, unknown>,
): T {
  const patterns = secrets.paths;
  const top: WalkState = { wanted: patterns.start, free: free.start, hot: false, own: false };
  return withoutStack(json, fields(json as unknown as Tree, top) as unknown as T);

  /** A value of the State's JSON. Tags of `encode` are treated as the values that they stand for. */
  function walk(tree: unknown, place: WalkState): unknown {
    if (typeof tree === "string" && place.own) return secrets.clean(tree);
    if (typeof tree !== "object" || tree === null) return tree;
    if (place.hot || place.wanted.length > 0) return inside(tree, place);
    if (!secrets.hasExpressions) return tree;
    // No path leads further, so the result is the same wherever the tree is.
    if (!place.own || known === undefined || !Object.isFrozen(tree)) return inside(tree, place);
    const before = known.get(tree);
    if (before !== undefined) return before;
    const made = inside(tree, place);
    known.set(tree, made);
    return made;
  }

  function inside(tree: object, place: WalkState): unknown {
    if (Array.isArray(tree)) return items(tree, place);
    const keys = Object.keys(tree);
    const tag = looksTagged(keys) ? keys[0] : undefined;
    return tag === undefined ? fields(tree as Tree, place) : tagged(tree as Tree, tag, place);
  }

  function at(tree: unknown, key: string, place: WalkState): unknown {
    const wanted = patterns.advance(place.wanted, key);
    const allowed = free.advance(place.free, key);
    const hot = place.hot || wanted.hit;
    if (hot && allowed.hit) return REDACTED;
    return walk(tree, { wanted: wanted.next, free: allowed.next, hot, own: allowed.hit });
  }

  function fields(tree: Tree, place: WalkState): Tree {
    let copy: Tree | undefined;
    for (const key of Object.keys(tree)) {
      const kept = at(tree[key], key, place);
      if (kept === tree[key]) continue;
      copy ??= { ...tree };
      setKey(copy, key, kept);
    }
    return copy ?? tree;
  }

  function items(
    tree: readonly unknown[],
    place: WalkState,
    indexes?: readonly unknown[],
  ): unknown {
    let copy: unknown[] | undefined;
    tree.forEach((item, index) => {
      const kept = at(item, String(indexes?.[index] ?? index), place);
      if (kept === item) return;
      copy ??= [...tree];
      copy[index] = kept;
    });
    return copy ?? tree;
  }

  function tagged(tree: Tree, tag: string, place: WalkState): unknown {
    const content = contentOf(tree[tag], tag, place);
    if (content === tree[tag]) return tree;
    // An incomplete instance might not load, and what is left of a URL may not be one.
    return tag === "$type" || typeof content === "string" ? REDACTED : { [tag]: content };
  }

  function contentOf(content: unknown, tag: string, place: WalkState): unknown {
    if (tag === "$object") return fields(content as Tree, place);
    if (tag === "$url") return walk(content, place);
    if (!Array.isArray(content)) return content;
    const parts: readonly unknown[] = content;
    switch (tag) {
      case "$set":
        return items(parts, place);
      case "$map":
        return same(
          parts,
          parts.map((entry, index) => entryOf(entry as Entry, index, place)),
        );
      case "$sparse":
        return same(parts, [
          parts[0],
          parts[1],
          items(parts[2] as unknown[], place, parts[1] as unknown[]),
        ]);
      case "$regexp":
        return place.own && secrets.clean(String(parts[0])) !== parts[0] ? REDACTED : content;
      case "$type":
        return same(parts, [parts[0], walk(parts[1], place)]);
      case "$error":
        return same(parts, errorOf(parts, place));
      default:
        return content;
    }
  }

  function entryOf(entry: Entry, index: number, place: WalkState): Entry {
    const [key, value] = entry;
    const name = typeof key === "object" ? String(index) : String(key);
    const below = { ...place, wanted: patterns.advance(place.wanted, name).next };
    const kept = typeof key === "object" ? walk(key, below) : key;
    return same(entry, [kept, at(value, name, place)]) as Entry;
  }

  function errorOf(parts: readonly unknown[], place: WalkState): readonly unknown[] {
    const [type, name, message, stack, own] = parts;
    const kept = at(message, "message", place);
    // A stack contains the message.
    const trace = kept === message && at(stack, "stack", place) === stack ? stack : null;
    return [type, name, kept, trace, fields(own as Tree, place)];
  }
}

/** Removes the stack of an error whose message was redacted, because it contains the message. */
function withoutStack<T extends Partial<StateJSON>>(before: T, after: T): T {
  if (after.error?.stack === undefined || after.error.message === before.error?.message) {
    return after;
  }
  const { stack: _stack, ...error } = after.error;
  return { ...after, error };
}

type Tree = Record<string, unknown>;
type Entry = readonly [unknown, unknown];

/** The old list if the new one has the same items. */
function same(before: readonly unknown[], after: readonly unknown[]): readonly unknown[] {
  return after.every((item, index) => item === before[index]) ? before : after;
}
