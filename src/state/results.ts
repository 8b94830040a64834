import { decode } from "./decode.js";
import { encode } from "./encode.js";
import { freezeCopy } from "./freeze-copy.js";
import { OPAQUE, traitsOf } from "./json-traits.js";
import { count, fieldsOf, type Kind, name } from "./kinds.js";
import { isPlainObject } from "./shape.js";
import { NewestLog } from "./steps.js";

type Result = readonly [key: string, value: unknown];

/** Marks a removed result in the log. */
const gone = Symbol("gone");

/**
 * The results of a node, by key. A node may have a hundred thousand of them and each save captures them, so
 * capturing is free.
 */
export class Results {
  /** A later entry replaces an earlier one with the same key. */
  readonly #log: NewestLog<Result>;

  private constructor(log: NewestLog<Result>) {
    this.#log = log;
  }

  static of(results: Iterable<Result>): Results {
    return new Results(NewestLog.of(results, Number.POSITIVE_INFINITY));
  }

  /** The number of entries, including replaced ones. */
  get length(): number {
    return this.#log.length;
  }

  with(key: string, value: unknown): Results {
    return new Results(this.#log.with([key, value]));
  }

  without(key: string): Results {
    return this.with(key, gone);
  }

  byKey(): Map<string, unknown> {
    const known = new Map(this.#log.list());
    for (const [key, value] of known) if (value === gone) known.delete(key);
    return known;
  }
}

/** What a node that has not completed has done so far. */
export interface Unfinished {
  readonly node: string;
  /** The results of work that must not be repeated, by key. */
  readonly results: Results;
  /** How many results it has recorded in total, including those removed since; a replacement does not count. */
  readonly count: number;
  /** Whether a save must walk the results; see `json-traits.ts`. */
  readonly opaque: boolean;
}

/** What a node that has not completed has done so far, as JSON. */
export interface UnfinishedJSON {
  /** The node. */
  readonly node: string;
  /** Its results so far, by key, with tags where JSON has no type for a value. */
  readonly results: unknown;
  /** How many results it has recorded in total; the number of `results` if absent. */
  readonly count?: number;
}

/** The same in a record. */
export const unfinished: Kind<Unfinished, UnfinishedJSON> = {
  // A resume finds a result by its key.
  userText: {
    fields: { node: "fixed", results: { each: "own", fixedKeys: true }, count: "fixed" },
  },
  read: (json, path, key) => {
    const at = `${path}.${key}`;
    const fields = fieldsOf(json, at);
    const { value, traits } = decode(fields.results, "results");
    const results = Results.of(Object.entries(fieldsOf(value, `${at}.results`)));
    const given = fields.count;
    return Object.freeze({
      node: name.read(fields.node, at, "node"),
      results,
      count: given === undefined ? results.length : count.read(given, at, "count"),
      opaque: (traits & OPAQUE) !== 0,
    });
  },
  write: ({ node, results, count }) => ({
    node,
    results: encode(Object.fromEntries(results.byKey()), "results"),
    count,
  }),
};

/** The prefix of the keys under which an unfinished node keeps copies of the run's data. */
export const DATA_COPY = "data: ";

/**
 * Applies `change` to the copies of the run's data in an unfinished node's results: the node continues from
 * those, not from the State.
 */
export function withDataCopies(
  unfinished: Unfinished,
  change: (data: object) => object,
): Unfinished {
  let { results, opaque } = unfinished;
  for (const [key, data] of results.byKey()) {
    if (!key.startsWith(DATA_COPY) || !isPlainObject(data)) continue;
    const kept: object = freezeCopy(change(data));
    opaque ||= (traitsOf(kept) & OPAQUE) !== 0;
    results = results.with(key, kept);
  }
  return Object.freeze({ ...unfinished, results, opaque });
}
