import { ConfigError, show } from "../errors.js";

/**
 * Replaces a value that was redacted.
 *
 * @example
 * ```ts
 * import { REDACTED, redact } from "waymark/codecs";
 *
 * console.log(JSON.stringify(redact({ token: "t0p" }, ["token"])).includes(REDACTED)); // true
 * ```
 */
export const REDACTED = "[redacted]";

/** One segment of a pattern: any sequence of keys, or one key that matches. */
interface Segment {
  readonly any: boolean;
  readonly fits: (key: string) => boolean;
  readonly last: boolean;
}

/** The position of a walk in its patterns: the segments that the next key may match. */
export type Positions = readonly number[];

/** The result of following one key. */
export interface Advance {
  /** Whether a pattern ends here. */
  readonly hit: boolean;
  /** The positions below this key. */
  readonly next: Positions;
}

/**
 * What to redact: a string is a path of keys, see {@link redact}; a regular expression is searched for in
 * every string.
 */
export type Redaction = readonly (string | RegExp)[];

/** Throws if the value is not a list of paths and expressions. */
export function checkRedaction(name: string, value: unknown): void {
  if (!Array.isArray(value)) {
    throw new ConfigError(name, `must be an array of paths and expressions; got ${show(value)}`);
  }
  value.forEach((one: unknown, index) => {
    if (one instanceof RegExp || (typeof one === "string" && !one.split(".").includes(""))) return;
    throw new ConfigError(
      `${name}[${index}]`,
      `must be keys joined by dots, such as "data.apiKey" or "*.token"; got ${show(one)}`,
    );
  });
}

/**
 * The paths and expressions of a redaction. Paths are followed one key at a time as a value is walked: none is
 * ever built, and no pattern can make matching slow.
 */
export class Secrets {
  /** The positions at the start of a walk. */
  readonly start: Positions;
  readonly #segments: readonly Segment[];
  readonly #expressions: readonly RegExp[];

  /** @throws ConfigError if it is not a list of paths and expressions. */
  constructor(redaction: Redaction) {
    checkRedaction("patterns", redaction);
    const segments: Segment[] = [];
    const start: number[] = [];
    for (const path of redaction) {
      if (typeof path !== "string") continue;
      const parts = path.toLowerCase().split(".");
      start.push(segments.length);
      // A leading `*` also matches no key at all.
      if (isAny(parts[0]) && parts.length > 1) start.push(segments.length + 1);
      parts.forEach((part, index) => {
        segments.push({ any: isAny(part), fits: glob(part), last: index === parts.length - 1 });
      });
    }
    this.start = start;
    this.#segments = segments;
    this.#expressions = redaction.filter((one) => one instanceof RegExp).map(everywhere);
  }

  /** Follows one key. */
  advance(positions: Positions, key: string): Advance {
    const name = key.toLowerCase();
    const next: number[] = [];
    let hit = false;
    for (const position of positions) {
      const segment = this.#segments[position];
      if (segment === undefined || !(segment.any || segment.fits(name))) continue;
      if (segment.any && !next.includes(position)) next.push(position);
      if (segment.last) hit = true;
      else if (!next.includes(position + 1)) next.push(position + 1);
    }
    return { hit, next };
  }

  /** Whether strings are searched. */
  get hasExpressions(): boolean {
    return this.#expressions.length > 0;
  }

  /** A string with every match of the expressions replaced. */
  clean(text: string): string {
    return this.#expressions.reduce((rest, one) => rest.replace(one, REDACTED), text);
  }
}

function isAny(part: string | undefined): boolean {
  return part !== undefined && /^\*+$/.test(part);
}

function glob(part: string): (key: string) => boolean {
  const [first = "", ...rest] = part.split("*");
  const last = rest.pop();
  if (last === undefined) return (key) => key === first;
  return (key) => {
    if (!key.startsWith(first)) return false;
    let at = first.length;
    for (const middle of rest) {
      const found = key.indexOf(middle, at);
      if (found < 0) return false;
      at = found + middle.length;
    }
    return key.length - last.length >= at && key.endsWith(last);
  };
}

/** The same expression with the `g` flag and without `y`. */
function everywhere({ source, flags }: RegExp): RegExp {
  return new RegExp(source, [...new Set(`${flags.replace("y", "")}g`)].join(""));
}
