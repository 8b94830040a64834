import type { LogLine } from "../observers/log/reader.js";
import { isReason } from "../state/fields.js";
import { Ledger, type Usage, type UsageTotals } from "../state/ledger.js";
import type { RunStatus } from "../state/record.js";
import type { ReportError } from "./record.js";

/** A visit of a node, according to a log. */
export interface Visit {
  /** How many nodes had completed before it. */
  readonly index: number;
  readonly node: string;
  readonly failed: boolean;
  readonly startedAt: string | undefined;
  readonly endedAt: string;
  readonly durationMs: number;
  readonly attempts: number;
  /** The ledger of all visits up to this one. */
  readonly ledger: Ledger;
  readonly used: Ledger;
  readonly decisions: readonly LogLine[];
  readonly before: Visit | undefined;
}

/** The number of checkpoints whose visits are remembered; those of others are derived from their step. */
const MAX_CHECKPOINTS = 10_000;

/**
 * Goes through the log of a run and finds the visits that count. A run that dies and is resumed continues from a
 * checkpoint; the visits after that checkpoint are lost, and happen again.
 */
export class Replay {
  graph = "";
  startedAt: string | undefined;
  updatedAt = "";
  resumes = 0;
  /** The last visit that counts. */
  last: Visit | undefined;
  /** The last visit that a checkpoint contains. */
  saved: Visit | undefined;
  status: RunStatus = "pending";
  next: string | undefined;
  error: ReportError | undefined;
  readonly #checkpoints = new Map<string, Visit | undefined>();
  #lost = { visits: 0, ledger: Ledger.empty };
  #loaded = "";
  /** Whether the run was loaded and has not started yet. */
  #isLoading = false;
  /** The current visit. */
  #started: LogLine | undefined;
  /** Its usage that no checkpoint contains. */
  #unsaved = Ledger.empty;
  #attempts = 1;
  #decisions: LogLine[] = [];
  /** The usage of a node before it paused: it belongs to the visit that will end. */
  #paused = Ledger.empty;

  /** The ledger of all visits that count. */
  get ledger(): Ledger {
    return (this.last?.ledger ?? Ledger.empty).merge(Ledger.empty, this.#paused);
  }

  /** The work that was lost. */
  get repeated(): { readonly visits: number; readonly usage: UsageTotals } {
    return { visits: this.#lost.visits, usage: this.#lost.ledger.usage };
  }

  add(line: LogLine): void {
    if (line.ts > this.updatedAt) this.updatedAt = line.ts;
    // Events of a graph inside a node belong to that node.
    if (line.path !== undefined && line.event !== "usage") return;
    handlers.get(line.event)?.(this, line);
  }

  /** The last visit when a checkpoint was saved; `undefined` if the log does not have the checkpoint. */
  at(checkpointId: string): { last: Visit | undefined } | undefined {
    return this.#checkpoints.has(checkpointId)
      ? { last: this.#checkpoints.get(checkpointId) }
      : undefined;
  }

  start(line: LogLine): void {
    const resumed = line.resumed === true;
    this.graph = text(line, "source");
    this.status = "in_progress";
    this.error = undefined;
    // Its process died in the middle of a node.
    if (this.#started !== undefined) this.#lose(this.#unsaved, 1);
    this.#started = undefined;
    this.#isLoading = false;
    if (resumed) {
      this.resumes++;
      this.startedAt ??= line.ts;
    } else {
      this.startedAt = line.ts;
      this.next = text(line, "entryPoint");
      this.#setBack(undefined);
      this.#losePaused();
    }
  }

  load(line: LogLine): void {
    this.#loaded = text(line, "checkpointId");
    this.#isLoading = true;
  }

  resume(line: LogLine): void {
    this.#setBack(this.#holds(count(line, "step")));
    this.next = text(line, "resumeNode");
  }

  save(line: LogLine): void {
    // Saved before the run continues, so without the visits after the checkpoint that was loaded.
    if (isReason(line.reason, "resume")) this.#setBack(this.#holds(count(line, "step")));
    if (isReason(line.reason, "rollback")) {
      this.#setBack(this.#holds(count(line, "step")));
      this.status = "in_progress";
      this.next = undefined;
      this.error = undefined;
    }
    const [oldest] = this.#checkpoints.size >= MAX_CHECKPOINTS ? this.#checkpoints.keys() : [];
    if (oldest !== undefined) this.#checkpoints.delete(oldest);
    this.#checkpoints.set(text(line, "checkpointId"), this.last);
    this.saved = this.last;
    // A save between a load and the start is by another process.
    if (!this.#isLoading) this.#unsaved = Ledger.empty;
  }

  nodeStart(line: LogLine): void {
    this.#started = line;
    this.#unsaved = Ledger.empty;
    this.#attempts = 1;
    this.#decisions = [];
    this.next = line.node;
  }

  use({ node, inputTokens, outputTokens, costUsd, memoryPeakMb, ...rest }: LogLine): void {
    const { counters, peaks, price } = rest;
    const call = { inputTokens, outputTokens, costUsd, memoryPeakMb, counters, peaks, price };
    this.#unsaved = this.#unsaved.merge(Ledger.empty, ledgerOf(call, node));
  }

  decide(line: LogLine): void {
    this.#decisions.push(line);
  }

  follow(line: LogLine): void {
    this.next = text(line, "to");
  }

  nodeRetry(line: LogLine): void {
    this.#attempts = count(line, "attempt") + 1;
  }

  nodeComplete(line: LogLine): void {
    const failed = line.error !== undefined;
    const used = ledgerOf(line.usage, line.node).merge(Ledger.empty, this.#paused);
    this.#paused = Ledger.empty;
    const step = count(line, "step");
    this.last = {
      index: failed ? step : step - 1,
      node: line.node,
      failed,
      startedAt: this.#started?.ts,
      endedAt: line.ts,
      durationMs: count(line, "durationMs"),
      attempts: this.#attempts,
      used,
      decisions: this.#decisions,
      ledger: (this.last?.ledger ?? Ledger.empty).merge(Ledger.empty, used),
      before: this.last,
    };
    this.#started = undefined;
    if (!failed) this.next = undefined;
  }

  end(line: LogLine): void {
    this.status =
      line.event === "graph.complete"
        ? "completed"
        : line.event === "graph.pause"
          ? "paused"
          : line.code === "ABORTED"
            ? "in_progress"
            : "failed";
    if (line.event === "graph.pause")
      this.#paused = this.#paused.merge(Ledger.empty, ledgerOf(line.usage, line.node));
    this.#started = undefined;
    if (this.status === "completed") this.next = undefined;
    if (line.event !== "graph.fail") return;
    this.error = { name: text(line, "code"), message: text(line, "error"), node: line.node };
    this.next = line.node;
  }

  /** The last visit that the loaded checkpoint contains. */
  #holds(step: number): Visit | undefined {
    if (this.#checkpoints.has(this.#loaded)) return this.#checkpoints.get(this.#loaded);
    let visit = this.last;
    while (visit !== undefined && visit.index >= step) visit = visit.before;
    return visit;
  }

  /** Counts all visits after this one as lost. */
  #setBack(to: Visit | undefined): void {
    if (to !== this.last) this.#losePaused();
    const held = new Set<Visit>();
    for (let visit = to; visit !== undefined; visit = visit.before) held.add(visit);
    for (let visit = this.last; visit !== undefined; visit = visit.before) {
      if (held.has(visit)) break;
      this.#lose(visit.used, 1);
    }
    this.last = to;
  }

  #losePaused(): void {
    this.#lose(this.#paused, 0);
    this.#paused = Ledger.empty;
  }

  #lose(used: Ledger, visits: number): void {
    const { visits: before, ledger } = this.#lost;
    this.#lost = { visits: before + visits, ledger: ledger.merge(Ledger.empty, used) };
  }
}

type Handler = (replay: Replay, line: LogLine) => void;

const handlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ["graph.start", (replay, line) => replay.start(line)],
  ["graph.complete", (replay, line) => replay.end(line)],
  ["graph.pause", (replay, line) => replay.end(line)],
  ["graph.fail", (replay, line) => replay.end(line)],
  ["usage", (replay, line) => replay.use(line)],
  ["decision", (replay, line) => replay.decide(line)],
  ["edge.transition", (replay, line) => replay.follow(line)],
  ["checkpoint.load", (replay, line) => replay.load(line)],
  ["checkpoint.resume", (replay, line) => replay.resume(line)],
  ["checkpoint.save", (replay, line) => replay.save(line)],
  ["node.start", (replay, line) => replay.nodeStart(line)],
  ["node.retry", (replay, line) => replay.nodeRetry(line)],
  ["node.complete", (replay, line) => replay.nodeComplete(line)],
]);

/** A field of a line as text. Any program may have written to the log, so its fields are checked. */
function text(line: LogLine, field: string): string {
  const value = line[field];
  return typeof value === "string" ? value : "";
}

function count(line: LogLine, field: string): number {
  const value = line[field];
  return typeof value === "number" && value >= 0 ? value : 0;
}

function ledgerOf(usage: unknown, node: string): Ledger {
  try {
    return usage === undefined ? Ledger.empty : Ledger.empty.addUsage(node, usage as Usage);
  } catch {
    return Ledger.empty;
  }
}
