/**
 * The progress of a run, on one line of a terminal.
 *
 * @packageDocumentation
 */
import { after, now } from "../clock.js";
import type { AnyEvent, WaymarkEvent } from "../events.js";
import { check, checkOptions, integer } from "../options.js";
import { Ledger } from "../state/ledger.js";
import type { Usage } from "../usage.js";
import { dispatch, type Handlers } from "./dispatch.js";

/** What {@link progressBar} needs of a stream, such as `process.stderr`. */
export interface ProgressStream {
  /** Whether it is a terminal; nothing is written if not. */
  readonly isTTY?: boolean | undefined;
  /** How wide it is; 80 if unknown. */
  readonly columns?: number | undefined;
  /** Writes text. */
  write(text: string): unknown;
}

/** Options of {@link progressBar}. */
export interface ProgressBarOptions {
  /** Where to draw; `process.stderr` by default. */
  readonly stream?: ProgressStream;
  /** How many steps a run has, an integer ≥ 1. Without it, no bar is drawn. */
  readonly total?: number;
}

/** An observer that draws a line. */
export interface ProgressBar {
  /** Handles one event. */
  onEvent(event: AnyEvent): void;
  /** Clears the line, so that something else can be printed; the bar is redrawn below it. */
  clear(): void;
}

interface Run {
  readonly graph: string;
  readonly startedAt: number;
  node: string;
  step: number;
  ledger: Ledger;
}

/** The minimum time between two redraws, in milliseconds. */
const REDRAW = 50;
const CLEAR = "\r\u001b[2K";
const WIDTH = 20;
const MAX_RUNS = 1000;

/**
 * An observer that shows, on one line of a terminal, the running node, the number of completed steps, the elapsed
 * time and the cost. Without a terminal it writes nothing.
 *
 * @throws ConfigError if an option is invalid.
 *
 * @example
 * ```ts
 * import { StateGraph } from "waymark";
 * import { progressBar } from "waymark/observers/progress-bar";
 *
 * const graph = new StateGraph({ name: "article", observer: progressBar({ total: 7 }) });
 * console.log(graph.name); // article
 * ```
 */
export function progressBar(options: ProgressBarOptions = {}): ProgressBar {
  checkOptions("progressBar", options, {
    stream: check(
      "a stream with write",
      (value) => typeof (value as ProgressStream | null)?.write === "function",
    ),
    total: integer(1),
  });
  const { stream = process.stderr, total } = options;
  return stream.isTTY === true ? new Bar(stream, total) : { onEvent: () => {}, clear: () => {} };
}

type EndEvent = WaymarkEvent<"graph.complete" | "graph.pause" | "graph.fail">;

class Bar implements ProgressBar {
  readonly #stream: ProgressStream;
  readonly #total: number | undefined;
  readonly #runs = new Map<string, Run>();
  /** The run with the latest event. */
  #latest: Run | undefined;
  #drawnAt = Number.NEGATIVE_INFINITY;
  /** Cancels the scheduled redraw. */
  #cancel: (() => void) | undefined;
  readonly #handlers: Handlers = {
    "graph.start": (event) => this.#start(event),
    "node.start": (event) => this.#move(event),
    "node.retry": (event) => this.#move(event),
    "node.complete": (event) => this.#move(event, event.data.usage),
    "graph.complete": (event) => this.#end(event, "✓", "completed"),
    "graph.pause": (event) => {
      this.#used(event.runId, event.data.usage);
      this.#end(event, "⏸", `paused at ${event.data.node}`);
    },
    "graph.fail": (event) => this.#end(event, "✗", `failed at ${event.data.node}`),
  };

  constructor(stream: ProgressStream, total: number | undefined) {
    this.#stream = stream;
    this.#total = total;
  }

  onEvent(event: AnyEvent): void {
    // A graph inside a node is a part of that node.
    if (event.rootRunId !== undefined && this.#runs.has(event.rootRunId)) return;
    dispatch(this.#handlers, event);
  }

  clear(): void {
    if (this.#latest === undefined) return;
    this.#stream.write(CLEAR);
    this.#drawnAt = now();
    this.#draw();
  }

  #start({ runId, source: graph, data }: WaymarkEvent<"graph.start">): void {
    const [oldest] = this.#runs.size >= MAX_RUNS ? this.#runs.keys() : [];
    if (oldest !== undefined) this.#runs.delete(oldest);
    const { step } = data;
    this.#runs.set(runId, { graph, startedAt: now(), node: "", step, ledger: Ledger.empty });
  }

  #move(
    { runId, data }: WaymarkEvent<"node.start" | "node.retry" | "node.complete">,
    usage?: Usage,
  ): void {
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    run.node = data.node;
    run.step = data.step;
    this.#used(runId, usage);
    this.#latest = run;
    this.#draw();
  }

  #used(runId: string, usage: Usage | undefined): void {
    const run = this.#runs.get(runId);
    if (run !== undefined && usage !== undefined) run.ledger = run.ledger.addUsage("all", usage);
  }

  /** Draws now or, if the last redraw was too recent, later, so that the latest event is always shown. */
  #draw(): void {
    const wait = REDRAW - (now() - this.#drawnAt);
    if (wait > 0) {
      this.#cancel ??= after(wait, () => {
        this.#cancel = undefined;
        this.#draw();
      });
      return;
    }
    const run = this.#latest;
    if (run === undefined) return;
    this.#drawnAt = now();
    const others = this.#runs.size > 1 ? `(+${this.#runs.size - 1})` : "";
    this.#write([this.#bar(run.step), run.graph, run.node, others, ...this.#facts(run, run.step)]);
  }

  #end({ runId, data }: EndEvent, sign: string, how: string): void {
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    this.#runs.delete(runId);
    if (this.#latest === run) {
      this.#latest = undefined;
      this.#cancel?.();
      this.#cancel = undefined;
    }
    this.#write([sign, run.graph, how, ...this.#facts(run, data.step)], "\n");
  }

  #bar(step: number): string {
    if (this.#total === undefined) return "";
    const full = Math.min(WIDTH, Math.round((step / this.#total) * WIDTH));
    return "█".repeat(full) + "░".repeat(WIDTH - full);
  }

  #facts({ startedAt, ledger }: Run, step: number): string[] {
    const { inputTokens, outputTokens, costUsd } = ledger.usage;
    const tokens = inputTokens + outputTokens;
    return [
      this.#total === undefined ? `step ${step}` : `${step}/${this.#total}`,
      `${((now() - startedAt) / 1000).toFixed(1)} s`,
      tokens === 0 ? "" : `${tokens.toLocaleString("en")} tokens`,
      costUsd === 0 ? "" : `$${costUsd.toFixed(costUsd < 0.01 ? 4 : 2)}`,
    ];
  }

  #write(parts: readonly string[], end = ""): void {
    const line = parts.filter((part) => part !== "").join("  ");
    // A name may contain anything, including sequences that move the cursor.
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
    const shown = line.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");
    this.#stream.write(CLEAR + shown.slice(0, (this.#stream.columns || 80) - 1) + end);
  }
}
