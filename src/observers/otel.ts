/**
 * Runs as OpenTelemetry traces.
 *
 * @packageDocumentation
 */
import { createHash } from "node:crypto";
import type { Attributes, Link, Span, SpanContext, Tracer } from "@opentelemetry/api";
import type { AnyEvent, WaymarkEvent } from "../events.js";
import { missingPeer, requirePeer } from "../optional-peer.js";
import { check, checkOptions, oneOf } from "../options.js";
import { Ledger } from "../state/ledger.js";
import { reasons } from "../state/reasons.js";
import { dispatch, type Handlers } from "./dispatch.js";

/** Options of {@link openTelemetry}. */
export interface OpenTelemetryOptions {
  /** The `Tracer` of `@opentelemetry/api` that creates the spans; by default the global provider's tracer `waymark`. */
  readonly tracer?: SpanStarter;
  /**
   * Which trace a run belongs to. `"run"`, the default: its own. The trace id is derived from the run id, so all
   * processes that work on a run share it; the trace counts as sampled. `"active"`: the trace that is active when
   * the run starts.
   */
  readonly parent?: "run" | "active";
}

/*
 * The declarations use no type of `@opentelemetry/api`, so they compile if it is not installed.
 */

/** The method of a `Tracer` of `@opentelemetry/api` that is needed. */
export interface SpanStarter {
  /** Starts a span. */
  startSpan(name: string, options?: object, context?: unknown): unknown;
}

/** The `SpanContext` of `@opentelemetry/api`. */
export interface RunSpanContext {
  /** The id of the trace, in hexadecimal. */
  readonly traceId: string;
  /** The id of the span, in hexadecimal. */
  readonly spanId: string;
  /** 1: sampled. */
  readonly traceFlags: number;
  /** Whether the span belongs to another process. */
  readonly isRemote: boolean;
}

/** An observer that creates spans. */
export interface OpenTelemetryObserver {
  /** Handles one event. */
  onEvent(event: AnyEvent): void;
}

/** Runs that never end must not accumulate. */
const MAX_RUNS = 10_000;

/**
 * An observer that creates a span for each run, with a child span for each node: `waymark.run_id`,
 * `waymark.node`, `waymark.step`, `waymark.attempt` and `gen_ai.usage.*`. Retries and saves are events of these
 * spans. Spans never contain data, messages or other text from nodes.
 *
 * The span of a resumed run links to the previous one: directly if this process created it, otherwise to the
 * context that {@link runSpanContext} derives from the run id. Nothing needs to be saved for that.
 *
 * @throws ConfigError if `@opentelemetry/api` is not installed or an option is invalid.
 *
 * @example
 * ```ts
 * import { StateGraph } from "waymark";
 * import { openTelemetry, runSpanContext } from "waymark/observers/otel";
 *
 * const graph = new StateGraph({ name: "article", observer: openTelemetry() });
 * console.log(graph.name, runSpanContext("monday").traceId.length); // article 32
 * ```
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): OpenTelemetryObserver {
  checkOptions("openTelemetry", options, {
    tracer: check(
      "a tracer with startSpan",
      (value) => typeof (value as SpanStarter | null)?.startSpan === "function",
    ),
    parent: oneOf("run", "active"),
  });
  const api = loadApi();
  const { tracer = api.trace.getTracer("waymark"), parent = "run" } = options;
  return new Tracing(api, tracer as Tracer, parent);
}

/**
 * The span context of a run in its own trace. It is derived from the run id, so it is the same in every process. No
 * span with this id is ever exported; it is the parent of the spans of all resumes.
 *
 * @example
 * ```ts
 * import { runSpanContext } from "waymark/observers/otel";
 *
 * const { traceId, spanId } = runSpanContext("monday");
 * console.log(traceId.length, spanId.length, runSpanContext("monday").traceId === traceId); // 32 16 true
 * ```
 */
export function runSpanContext(runId: string): RunSpanContext {
  const hash = createHash("sha256").update(`waymark ${runId}`).digest("hex");
  return { traceId: hash.slice(0, 32), spanId: hash.slice(32, 48), traceFlags: 1, isRemote: true };
}

type Api = typeof import("@opentelemetry/api");

function loadApi(): Api {
  try {
    // Not an import: a static one could not be caught, and a dynamic one would miss the first events.
    return requirePeer("@opentelemetry/api") as Api;
  } catch (error) {
    const install = `@opentelemetry/api (${String(error).split("\n")[0]})`;
    throw missingPeer("openTelemetry", "the package @opentelemetry/api", install);
  }
}

/** The spans of a run in progress. */
interface OpenRun {
  readonly span: Span;
  node: Span | undefined;
  ledger: Ledger;
  /** Whether it is inside a node of another traced run, which its usage is attributed to. */
  readonly isInside: boolean;
  /** The key by which the runs inside its nodes find it. */
  readonly place: string;
}

type EndEvent = WaymarkEvent<"graph.complete" | "graph.pause" | "graph.fail">;

class Tracing implements OpenTelemetryObserver {
  readonly #api: Api;
  readonly #tracer: Tracer;
  readonly #parent: "run" | "active";
  readonly #runs = new Map<string, OpenRun>();
  /** The same runs, by their outermost run and the path of nodes that leads to them. */
  readonly #places = new Map<string, OpenRun>();
  /** The last span of each run that has ended in this process. */
  readonly #before = new Map<string, SpanContext>();
  readonly #handlers: Handlers = {
    "graph.start": (event) => this.#start(event),
    "node.start": (event) => this.#nodeStarted(event),
    "node.retry": (event) => this.#nodeRetried(event),
    "node.complete": (event) => this.#nodeEnded(event),
    usage: (event) => this.#called(event),
    "checkpoint.save": (event) => this.#saved(event),
    "graph.complete": (event) => this.#end(event, "completed"),
    "graph.pause": (event) => {
      this.#used(event.runId, event.data.usage);
      this.#end(event, "paused");
    },
    "graph.fail": (event) => this.#end(event, "failed", event.data.code),
  };

  constructor(api: Api, tracer: Tracer, parent: "run" | "active") {
    this.#api = api;
    this.#tracer = tracer;
    this.#parent = parent;
  }

  onEvent(event: AnyEvent): void {
    dispatch(this.#handlers, event);
  }

  #start(event: WaymarkEvent<"graph.start">): void {
    const { runId, rootRunId = runId, source, timestamp, path = [], data } = event;
    const { trace, context, ROOT_CONTEXT } = this.#api;
    close(this.#runs.get(runId));
    const outer =
      path.length === 0 ? undefined : this.#places.get(spanKey(rootRunId, path.slice(0, -1)));
    const active = trace.getSpanContext(context.active());
    const inActive = this.#parent === "active";
    const links: Link[] = [];
    if (data.resumed) links.push(link(this.#before.get(runId) ?? runSpanContext(runId), "resumed"));
    if (!inActive && active !== undefined && outer === undefined)
      links.push(link(active, "caller"));
    const attributes = {
      "waymark.run_id": runId,
      "waymark.graph": source,
      "waymark.step": data.step,
      "waymark.resumed": data.resumed,
      ...(path.length > 0 && { "waymark.path": [...path] }),
    };
    const span = this.#tracer.startSpan(
      `run ${source}`,
      { attributes, links, startTime: Date.parse(timestamp) },
      outer !== undefined
        ? trace.setSpan(ROOT_CONTEXT, outer.node ?? outer.span)
        : inActive
          ? context.active()
          : trace.setSpanContext(ROOT_CONTEXT, runSpanContext(runId)),
    );
    const place = spanKey(rootRunId, path);
    const isInside = outer !== undefined;
    const run = { span, node: undefined, ledger: Ledger.empty, isInside, place };
    const dropped = remember(this.#runs, runId, run);
    if (dropped !== undefined) this.#places.delete(dropped.place);
    close(dropped);
    this.#places.set(place, run);
  }

  #nodeStarted({ runId, timestamp, data }: WaymarkEvent<"node.start">): void {
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    const { trace, ROOT_CONTEXT } = this.#api;
    run.node?.end(Date.parse(timestamp));
    const attributes = {
      "waymark.run_id": runId,
      "waymark.node": data.node,
      "waymark.step": data.step,
      "waymark.attempt": 1,
    };
    run.node = this.#tracer.startSpan(
      `node ${data.node}`,
      { attributes, startTime: Date.parse(timestamp) },
      trace.setSpan(ROOT_CONTEXT, run.span),
    );
  }

  #nodeRetried({ runId, timestamp, data }: WaymarkEvent<"node.retry">): void {
    const { attempt, delayMs } = data;
    const attributes = { "waymark.attempt": attempt, "waymark.delay_ms": delayMs };
    this.#runs
      .get(runId)
      ?.node?.addEvent("waymark.retry", attributes, Date.parse(timestamp))
      .setAttribute("waymark.attempt", attempt + 1);
  }

  #nodeEnded({ runId, timestamp, data }: WaymarkEvent<"node.complete">): void {
    const run = this.#runs.get(runId);
    if (run?.node === undefined) return;
    this.#used(runId, data.usage);
    if (data.error !== undefined) run.node.setStatus({ code: this.#api.SpanStatusCode.ERROR });
    run.node.end(Date.parse(timestamp));
    run.node = undefined;
  }

  /** Adds the usage of one call as an event of the node's span. */
  #called({ runId, timestamp, data }: WaymarkEvent<"usage">): void {
    const { node: _node, step: _step, ...call } = data;
    const attributes = {
      ...usageAttributes(Ledger.empty.addUsage("all", call)),
      ...(call.model !== undefined && { "gen_ai.request.model": call.model }),
    };
    this.#runs.get(runId)?.node?.addEvent("waymark.usage", attributes, Date.parse(timestamp));
  }

  /** Adds the usage of the running node. */
  #used(runId: string, usage: WaymarkEvent<"node.complete">["data"]["usage"]): void {
    const run = this.#runs.get(runId);
    if (run === undefined || usage === undefined || run.isInside) return;
    const used = Ledger.empty.addUsage("all", usage);
    run.node?.setAttributes(usageAttributes(used));
    run.ledger = run.ledger.merge(Ledger.empty, used);
  }

  #saved({ runId, timestamp, data }: WaymarkEvent<"checkpoint.save">): void {
    const { sequence, reason, durationMs, bytes } = data;
    const attributes: Attributes = {
      "waymark.sequence": sequence,
      ...(ownReasons.has(reason) && { "waymark.reason": reason }),
      "waymark.duration_ms": durationMs,
      ...(bytes !== undefined && { "waymark.bytes": bytes }),
    };
    const at = Date.parse(timestamp);
    const run = this.#runs.get(runId);
    // A graph inside a node is saved with the outer run.
    if (run?.isInside === false) run.span.addEvent("waymark.checkpoint.save", attributes, at);
  }

  #end({ runId, timestamp, data }: EndEvent, status: string, code?: string): void {
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    const { span, node, ledger } = run;
    const at = Date.parse(timestamp);
    node?.end(at);
    span.setAttributes({ "waymark.status": status, "waymark.step": data.step });
    if (!ledger.isEmpty) span.setAttributes(usageAttributes(ledger));
    if (code !== undefined) {
      // The message may quote data; the code never does.
      span.setAttribute("error.type", code);
      span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: code });
    }
    span.end(at);
    this.#runs.delete(runId);
    if (this.#places.get(run.place) === run) this.#places.delete(run.place);
    remember(this.#before, runId, span.spanContext());
  }
}

/** Any other reason may be text from a node, and is left out. */
const ownReasons: ReadonlySet<string> = new Set(reasons);

function spanKey(rootRunId: string, path: readonly string[]): string {
  return JSON.stringify([rootRunId, ...path]);
}

/** Ends the spans of a run that never ended. */
function close(run: OpenRun | undefined): void {
  run?.node?.end();
  run?.span.end();
}

function link(context: SpanContext, kind: string): Link {
  return { context, attributes: { "waymark.link": kind } };
}

/** Sets a key, and returns the value that was evicted for it. */
function remember<T>(map: Map<string, T>, key: string, value: T): T | undefined {
  const [oldest] = map.size >= MAX_RUNS && !map.has(key) ? map : [];
  if (oldest !== undefined) map.delete(oldest[0]);
  map.set(key, value);
  return oldest?.[1];
}

const usageNames: Readonly<Record<string, string>> = {
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  costUsd: "gen_ai.usage.cost",
};

function usageAttributes({ usage }: Ledger): Attributes {
  const { counters, peaks, ...known } = usage;
  const used = Object.entries({ ...counters, ...peaks, ...known }).filter(([, value]) => value > 0);
  return Object.fromEntries(
    used.map(([name, value]) => [
      Object.hasOwn(usageNames, name) ? usageNames[name] : `gen_ai.usage.${snakeCase(name)}`,
      value,
    ]),
  );
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
