import { context, type Tracer, trace } from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterEach, describe, expect, test, vi } from "vitest";
import { MemoryStore, State, StateGraph } from "../../src/index.js";
import { openTelemetry, runSpanContext } from "../../src/observers/otel.js";
import { event } from "./events.js";

afterEach(() => {
  vi.doUnmock("node:module");
});

function tracing(): { tracer: Tracer; spans: (name: string) => ReadableSpan[] } {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const spans = (name: string): ReadableSpan[] =>
    exporter.getFinishedSpans().filter((span) => span.name === name);
  return { tracer: provider.getTracer("test"), spans };
}

const store = new MemoryStore();
let failing = 0;
const graph = (observer: ReturnType<typeof openTelemetry>) =>
  new StateGraph<{ secret: string }>({
    name: "article",
    observer,
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("draft", async (state, ctx) => {
      ctx.ledger.usage({
        inputTokens: 100,
        outputTokens: 20,
        costUsd: 0.5,
        counters: { apiCalls: 2 },
      });
      await ctx.checkpoint(state, "hunter2 is in use");
      return { secret: "hunter2" };
    })
    .addNode(
      "review",
      (state) => {
        if (failing-- > 0) throw new Error("hunter2 is wrong");
        return state;
      },
      { retry: { maxAttempts: 2, initialInterval: 0 } },
    )
    .addEdge("draft", "review")
    .setEntryPoint("draft")
    .setExitPoint("review");

describe("traces", () => {
  test("have a span for the run, with a child for each node", async () => {
    const { tracer, spans } = tracing();
    failing = 1;
    await graph(openTelemetry({ tracer })).execute(State.create({ secret: "s" }, { runId: "r1" }));
    const [run] = spans("run article");
    const [draft] = spans("node draft");
    const [review] = spans("node review");
    expect(run?.attributes).toEqual({
      "waymark.run_id": "r1",
      "waymark.graph": "article",
      "waymark.step": 2,
      "waymark.resumed": false,
      "waymark.status": "completed",
      "gen_ai.usage.input_tokens": 100,
      "gen_ai.usage.output_tokens": 20,
      "gen_ai.usage.cost": 0.5,
      "gen_ai.usage.api_calls": 2,
    });
    expect(draft?.attributes).toMatchObject({
      "waymark.run_id": "r1",
      "waymark.node": "draft",
      "waymark.step": 0,
      "waymark.attempt": 1,
      "gen_ai.usage.input_tokens": 100,
    });
    expect(review?.attributes["waymark.attempt"]).toBe(2);
    expect(review?.events.map((one) => [one.name, one.attributes])).toMatchObject([
      ["waymark.retry", { "waymark.attempt": 1 }],
    ]);
    expect(draft?.parentSpanContext?.spanId).toBe(run?.spanContext().spanId);
    expect(run?.spanContext().traceId).toBe(runSpanContext("r1").traceId);
    expect(run?.links).toEqual([]);
    const saves = run?.events.filter((one) => one.name === "waymark.checkpoint.save");
    expect(saves?.map((one) => one.attributes?.["waymark.reason"])).toEqual([
      "start",
      undefined,
      "interval",
      "complete",
    ]);
  });

  test("a span has the reason of each save that waymark itself makes", async () => {
    const { tracer, spans } = tracing();
    const again = new StateGraph<{ n: number }>({
      name: "adaptive",
      observer: openTelemetry({ tracer }),
      breakpoints: { before: ["b"] },
      checkpoint: { store: new MemoryStore(), interval: "adaptive", maxLoss: { costUsd: 1 } },
    })
      .addNode("a", (_state, { ledger }) => {
        ledger.usage({ costUsd: 1 });
        return { n: 1 };
      })
      .addNode("b", () => ({ n: 2 }))
      .addEdge("a", "b")
      .setEntryPoint("a")
      .setExitPoint("b");
    await again.execute(State.create({ n: 0 }, { runId: "r4" }));
    await again.resume("r4");
    const reasons = spans("run adaptive").flatMap(({ events }) =>
      events
        .filter(({ name }) => name === "waymark.checkpoint.save")
        .map(({ attributes }) => attributes?.["waymark.reason"]),
    );
    expect(reasons).toEqual(["start", "adaptive", "pause", "complete"]);
  });

  test("a resumed run links to the previous span, or to the run's span context", async () => {
    const { tracer, spans } = tracing();
    const observer = openTelemetry({ tracer });
    failing = 4;
    const first = graph(observer);
    await first.execute(State.create({ secret: "s" }, { runId: "r2" })).catch(() => {});
    await first.resume("r2").catch(() => {});
    // Another process does not know those spans.
    await graph(openTelemetry({ tracer })).resume("r2");
    const runs = spans("run article");
    expect(runs.map((span) => span.attributes["waymark.status"])).toEqual([
      "failed",
      "failed",
      "completed",
    ]);
    expect(runs.map((span) => span.links.map((one) => one.context.spanId))).toEqual([
      [],
      [runs[0]?.spanContext().spanId],
      [runSpanContext("r2").spanId],
    ]);
    expect(new Set(runs.map((span) => span.spanContext().traceId)).size).toBe(1);
    expect(runs[0]?.attributes["error.type"]).toBe("NODE_FAILED");
    expect(runs[0]?.status).toEqual({ code: 2, message: "NODE_FAILED" });
    expect(spans("node review")[0]?.status.code).toBe(2);
  });

  test("spans contain no data and no messages", async () => {
    const { tracer, spans } = tracing();
    failing = 4;
    await graph(openTelemetry({ tracer }))
      .execute(State.create({ secret: "hunter2" }, { runId: "r3" }))
      .catch(() => {});
    const all = ["run article", "node draft", "node review"].flatMap(spans);
    const told = all.map(({ name, attributes, events, status }) => ({
      name,
      attributes,
      events,
      status,
    }));
    expect(JSON.stringify(told)).not.toContain("hunter2");
  });

  test("a run can be part of the active trace, or link to it", () => {
    const { tracer, spans } = tracing();
    const caller = tracer.startSpan("request");
    vi.spyOn(context, "active").mockReturnValue(trace.setSpan(context.active(), caller));
    for (const parent of ["active", "run"] as const) {
      const observer = openTelemetry({ tracer, parent });
      observer.onEvent(event("graph.start", "r", { entryPoint: "n", step: 0, resumed: false }));
      observer.onEvent(event("graph.pause", "r", { node: "n", step: 1, reason: "x" }));
    }
    const [inActive, own] = spans("run test");
    expect(inActive?.spanContext().traceId).toBe(caller.spanContext().traceId);
    expect(inActive?.links).toEqual([]);
    expect(own?.links.map((one) => one.context.spanId)).toEqual([caller.spanContext().spanId]);
    expect(own?.attributes["waymark.status"]).toBe("paused");
  });

  test("the usage of a node that pauses is in its span and in the run's", () => {
    const { tracer, spans } = tracing();
    const observer = openTelemetry({ tracer });
    const usage = { inputTokens: 7 };
    const pause = event("graph.pause", "r", { node: "n", step: 0, reason: "x", usage });
    observer.onEvent(pause);
    observer.onEvent(event("graph.start", "r", { entryPoint: "n", step: 0, resumed: false }));
    observer.onEvent(event("node.start", "r", { node: "n", step: 0 }));
    observer.onEvent(pause);
    for (const name of ["run test", "node n"]) {
      expect(spans(name).map((span) => span.attributes["gen_ai.usage.input_tokens"])).toEqual([7]);
    }
  });

  test("open spans are ended, and events of unknown runs are ignored", () => {
    const { tracer, spans } = tracing();
    const observer = openTelemetry({ tracer });
    const start = event("graph.start", "r", { entryPoint: "n", step: 0, resumed: false });
    const node = event("node.start", "r", { node: "n", step: 0 });
    for (const one of [start, node, node, start, node]) observer.onEvent(one);
    observer.onEvent(event("graph.fail", "r", { node: "n", step: 0, code: "ABORTED", error: "" }));
    expect(spans("run test")).toHaveLength(2);
    expect(spans("node n")).toHaveLength(3);
    observer.onEvent(node);
    observer.onEvent(event("node.complete", "x", { node: "n", step: 1, durationMs: 1 }));
    observer.onEvent(event("graph.complete", "x", { exitPoint: "n", step: 1 }));
  });

  test("without the package, the error names what to install", async () => {
    vi.resetModules();
    vi.doMock("node:module", () => ({
      createRequire: () => () => {
        throw new Error("Cannot find module '@opentelemetry/api'\nRequire stack");
      },
    }));
    const { openTelemetry: missing } = await import("../../src/observers/otel.js");
    expect(() => missing()).toThrow(
      "openTelemetry needs the package @opentelemetry/api: npm install @opentelemetry/api (Error: Cannot find",
    );
    expect(() => openTelemetry({ tracer: {} as Tracer })).toThrow(
      "openTelemetry.tracer must be a tracer with startSpan",
    );
    expect(openTelemetry()).toBeDefined();
  });
});

describe("rare events", () => {
  const begin = (runId: string) =>
    event("graph.start", runId, { entryPoint: "n", step: 0, resumed: false });

  test("a model call and a save are span events with their attributes", () => {
    const { tracer, spans } = tracing();
    const observer = openTelemetry({ tracer });
    observer.onEvent(begin("r"));
    observer.onEvent(event("node.start", "r", { node: "n", step: 0 }));
    observer.onEvent(
      event("usage", "r", { node: "n", step: 0, model: "small", inputTokens: 7 } as never),
    );
    observer.onEvent(
      event("checkpoint.save", "r", {
        ...{ node: "n", step: 1, sequence: 1, checkpointId: "c" },
        ...{ reason: "interval", durationMs: 3, bytes: 512 },
      }),
    );
    observer.onEvent(event("graph.complete", "r", { exitPoint: "n", step: 1 }));
    expect(spans("node n")[0]?.events[0]?.attributes).toMatchObject({
      "gen_ai.request.model": "small",
      "gen_ai.usage.input_tokens": 7,
    });
    expect(spans("run test")[0]?.events[0]?.attributes).toMatchObject({ "waymark.bytes": 512 });
  });

  test("a graph that starts between two nodes of the outer run is in that run's span", () => {
    const { tracer, spans } = tracing();
    const observer = openTelemetry({ tracer });
    observer.onEvent(begin("outer"));
    observer.onEvent({ ...begin("inner"), rootRunId: "outer", path: ["n"] });
    observer.onEvent(event("graph.complete", "inner", { exitPoint: "n", step: 1 }));
    observer.onEvent(event("graph.complete", "outer", { exitPoint: "n", step: 1 }));
    const [inner, outer] = spans("run test");
    expect(inner?.parentSpanContext?.spanId).toBe(outer?.spanContext().spanId);
  });

  test("beyond ten thousand runs without an end, the oldest span is ended", () => {
    const { tracer, spans } = tracing();
    const observer = openTelemetry({ tracer });
    for (let run = 0; run < 10_000; run++) observer.onEvent(begin(`r${run}`));
    expect(spans("run test")).toEqual([]);
    observer.onEvent(begin("one more"));
    expect(spans("run test").map((span) => span.attributes["waymark.run_id"])).toEqual(["r0"]);
  });
});
