import { type Redaction, redactor } from "../../codecs/redact.js";
import type { AnyEvent } from "../../events.js";
import { Trace } from "./trace.js";

/** Makes a line of JSON out of each event. */
export class Lines {
  readonly #trace = new Trace();
  readonly #redact: ((value: unknown) => unknown) | undefined;

  constructor(redaction: Redaction) {
    this.#redact = redaction.length === 0 ? undefined : redactor(redaction);
  }

  /** One event, with where it happened. */
  line(event: AnyEvent): string {
    const { step_id, parent_id, node } = this.#trace.place(event);
    const { timestamp: ts, type, runId, rootRunId: run = runId, source, path, data } = event;
    const head = { ts, step_id, parent_id, event: type, node, run, source };
    const nested = path && { path, inner_run: runId };
    const fields: Record<string, unknown> = { ...head, ...data, ...nested };
    // An event of somebody else's may have fields of these names.
    for (const name of reserved) fields[name] = head[name];
    // `error` has its message; JSON would make an empty object of it.
    if (fields.cause instanceof Error) fields.cause = undefined;
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
      this.#stringify(fields) ??
      this.#stringify(fields, plain) ??
      `${JSON.stringify({ ...head, unwritable: "its fields are no JSON" })}\n`
    );
  }

  #stringify(fields: object, replacer?: Replacer): string | undefined {
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
