import { redactor } from "../../codecs/redact.js";
import { ConfigError, show } from "../../errors.js";
import type { AnyEvent } from "../../events.js";
import { Trace } from "./trace.js";

/**
 * What must not be in a log: a string is a path of keys, as `redact` of `waymark/codecs` takes it
 * (`error`, `*.token`); a regular expression is looked for in every text.
 */
export type LogRedaction = readonly (string | RegExp)[];

/** Refuses what is not a list of patterns. */
export function checkRedaction(name: string, value: unknown): void {
  if (!Array.isArray(value)) {
    throw new ConfigError(name, `wants an array of paths and expressions, got ${show(value)}`);
  }
  const wrong = value.findIndex((one) => typeof one !== "string" && !(one instanceof RegExp));
  if (wrong < 0) return;
  throw new ConfigError(
    `${name}[${wrong}]`,
    `wants a string or a regular expression, got ${show(value[wrong])}`,
  );
}

/** Makes a line of JSON out of each event. */
export class Lines {
  readonly #trace = new Trace();
  readonly #redact: ((value: unknown) => unknown) | undefined;
  readonly #replacer: Replacer | undefined;

  constructor(redaction: LogRedaction) {
    const paths = redaction.filter((one) => typeof one === "string");
    this.#redact = paths.length === 0 ? undefined : redactor(paths);
    const expressions = redaction
      .filter((one) => one instanceof RegExp)
      .map(
        (one) => new RegExp(one.source, [...new Set(`${one.flags.replace("y", "")}g`)].join("")),
      );
    this.#replacer = expressions.length === 0 ? undefined : replacing(expressions);
  }

  /** One event, with where it happened. */
  line(event: AnyEvent): string {
    const { step_id, parent_id, node } = this.#trace.place(event);
    const { timestamp: ts, type, runId: run, source, data } = event;
    const head = { ts, step_id, parent_id, event: type, node, run, source };
    const fields: Record<string, unknown> = { ...head, ...data };
    // An event of somebody else's may have fields of these names.
    for (const name of reserved) {
      if (name in data) fields[name] = head[name];
    }
    return this.#write(fields, head);
  }

  /** A line that says how many are missing. */
  dropped(ts: string, run: string, count: number): string {
    const head = { ts, step_id: "", parent_id: "", event: "log.dropped", node: "", run };
    return `${JSON.stringify({ ...head, count })}\n`;
  }

  #write(fields: object, head: object): string {
    // Packages emit events of their own; what they put in may be no JSON.
    return (
      this.#stringify(fields, this.#replacer) ??
      this.#stringify(fields, this.#replacer ?? plain) ??
      `${JSON.stringify({ ...head, unwritable: "its fields are no JSON" })}\n`
    );
  }

  #stringify(fields: object, replacer: Replacer | undefined): string | undefined {
    try {
      const shown = this.#redact === undefined ? fields : this.#redact(fields);
      // Without a replacer this is several times as fast.
      return `${replacer === undefined ? JSON.stringify(shown) : JSON.stringify(shown, replacer)}\n`;
    } catch {
      return undefined;
    }
  }
}

type Replacer = (key: string, value: unknown) => unknown;

const reserved = ["ts", "step_id", "parent_id", "event", "run", "source"] as const;

function plain(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

function replacing(expressions: readonly RegExp[]): Replacer {
  return (key, value) =>
    typeof value === "string"
      ? expressions.reduce((text, one) => text.replace(one, "[redacted]"), value)
      : plain(key, value);
}
