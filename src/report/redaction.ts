import {
  type CheckpointStore,
  type HistoryEntry,
  type RunSummary,
  wrap,
} from "../checkpoint/store.js";
import { type Redaction as Patterns, Secrets } from "../codecs/patterns.js";
import { redactor } from "../codecs/redact.js";
import { redactState } from "../codecs/redact-state.js";
import type { LogLine } from "../observers/log/reader.js";
import type { StateJSON } from "../state/json.js";
import { defined } from "../state/shape.js";
import { State } from "../state/state.js";
import type { RunReport } from "./record.js";

/**
 * Removes what must not be shown. The patterns are paths in a State; values that a log or a report has taken from a
 * State are redacted as if they were still in it.
 */
export class Redaction {
  /** Whether there are any patterns. */
  readonly isOn: boolean;
  readonly #secrets: Secrets;
  readonly #redact: (value: unknown) => unknown;

  constructor(patterns: Patterns = []) {
    this.isOn = patterns.length > 0;
    this.#secrets = new Secrets(patterns);
    this.#redact = redactor(patterns);
  }

  state(state: State<object>): StateJSON {
    return this.isOn ? redactState(state.toJSON(), this.#secrets) : state.toJSON();
  }

  /** A store that loads redacted States. */
  store(store: CheckpointStore): CheckpointStore {
    if (!this.isOn) return store;
    return wrap(store, {
      load:
        (load) =>
        async (...args) =>
          State.fromJSON(this.state(await load<object>(...args))),
    });
  }

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

  report(report: RunReport): RunReport {
    if (!this.isOn) return report;
    const shown = this.#value(report);
    const { decisions } = this.#value({ ledger: { decisions: shown.decisions } }).ledger;
    return { ...shown, decisions };
  }

  /** Redacts an entry of a list or of a history. */
  summary<T extends RunSummary | HistoryEntry>(summary: T): T {
    return this.isOn ? this.#value(summary) : summary;
  }

  /** Redacts the message of an error that a node has thrown. */
  message(message: string): string {
    return this.#value({ error: { message } }).error.message;
  }

  #value<T>(value: T): T {
    return this.#redact(value) as T;
  }
}
