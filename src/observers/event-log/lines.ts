import { type Redaction, redactor } from "../../codecs/redact.js";
import type { AnyEvent } from "../../events.js";
import { Trace } from "./trace.js";

/** Turns each event into a line of JSON. */
export class Lines {
  readonly #trace = new Trace();
  readonly #redact: ((value: unknown) => unknown) | undefined;

  constructor(redaction: Redaction) {
    this.#redact = redaction.length === 0 ? undefined : redactor(redaction);
  }

  /** The line of an event, with the step it belongs to. */
  line(event: AnyEvent): string {
    const { step_id, parent_id, node } = this.#trace.place(event);
    const { timestamp: ts, type, runId, rootRunId: run = runId, source, path, data } = event;
    const head = { ts, step_id, parent_id, event: type, node, run, source };
    const nested = path && { path, inner_run: runId };
    const fields: Record<string, unknown> = { ...head, ...data, ...nested };
    // A custom event may have fields with these names.
    for (const name of reserved) fields[name] = head[name];
    // `error` has its message; JSON would turn it into an empty object.
    if (fields.cause instanceof Error) fields.cause = undefined;
    return this.#write(fields, head);
  }

  /** A line that reports how many are missing. */
  dropped(ts: string, run: string, count: number): string {
    const head = { ts, step_id: "", parent_id: "", event: "log.dropped", node: "", run };
    return `${JSON.stringify({ ...head, count })}\n`;
  }

  #write(fields: object, head: object): string {
    // Custom events may hold values that JSON can't.
    return (
      this.#stringify(fields) ??
      this.#stringify(fields, plain) ??
      `${JSON.stringify({ ...head, unwritable: "its fields are not valid JSON" })}\n`
    );
  }

  #stringify(fields: object, replacer?: Replacer): string | undefined {
    try {
      const shown = this.#redact === undefined ? fields : this.#redact(fields);
      // Without a replacer it is several times faster.
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
