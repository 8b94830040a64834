import { withMethods } from "../checkpoint/audited.js";
import type { CheckpointStore, HistoryEntry, RunSummary } from "../checkpoint/store.js";
import { type Redaction as Patterns, Secrets } from "../codecs/patterns.js";
import { redactor } from "../codecs/redact.js";
import { redactState } from "../codecs/redact-state.js";
import type { LogLine } from "../observers/event-log/reader.js";
import type { StateJSON } from "../state/json.js";
import { State } from "../state/state.js";
import type { RunReport } from "./record.js";

/**
 * Removes what is never to be shown. Its patterns are paths in a State; what a log or a
 * report says of a State is treated as if it were still there.
 */
export class Redaction {
  /** Whether there is anything to remove. */
  readonly isOn: boolean;
  readonly #secrets: Secrets;
  readonly #redact: (value: unknown) => unknown;

  constructor(patterns: Patterns = []) {
    this.isOn = patterns.length > 0;
    this.#secrets = new Secrets(patterns);
    this.#redact = redactor(patterns);
  }

  /** A State as JSON. */
  state(state: State<object>): StateJSON {
    return this.isOn ? redactState(state.toJSON(), this.#secrets) : state.toJSON();
  }

  /** A store whose States have nothing that must not be printed. */
  store(store: CheckpointStore): CheckpointStore {
    if (!this.isOn) return store;
    const load: CheckpointStore["load"] = async (...args) =>
      State.fromJSON(this.state(await store.load<object>(...args)));
    return withMethods(store, { load });
  }

  /** An event. */
  line(line: LogLine): LogLine {
    if (!this.isOn) return line;
    const shown = this.#value(line);
    const { description, rationale, alternatives, error, reason } = shown;
    const decision = { description, rationale, alternatives };
    const { pauses, ...seen } = this.#value({
      ledger: { decisions: [decision] },
      error: { message: error },
      pauses: [{ reason }],
    });
    return {
      ...shown,
      ...defined({ ...seen.ledger.decisions[0], error: seen.error.message }),
      ...(line.event === "graph.pause" && defined({ reason: pauses[0]?.reason })),
    };
  }

  /** What a run did. */
  report(report: RunReport): RunReport {
    if (!this.isOn) return report;
    const shown = this.#value(report);
    const { decisions } = this.#value({ ledger: { decisions: shown.decisions } }).ledger;
    return { ...shown, decisions };
  }

  /** What a list or a history says of a run. */
  summary<T extends RunSummary | HistoryEntry>(summary: T): T {
    return this.isOn ? this.#value(summary) : summary;
  }

  /** The message of an error that a node has thrown. */
  message(message: string): string {
    return this.#value({ error: { message } }).error.message;
  }

  #value<T>(value: T): T {
    return this.#redact(value) as T;
  }
}

function defined(fields: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
