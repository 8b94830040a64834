/**
 * Runs as traces: a span for each run and, inside it, one for each node, with its usage; retries and saves are
 * events of the spans. A run that fails and is resumed stays in one trace. No part of the State gets into a
 * span.
 *
 * The spans are kept in memory here and printed as a tree. A real program sets up an exporter once, for example
 * with @opentelemetry/sdk-node, and writes `observer: openTelemetry()`.
 *
 * Run it: npx tsx examples/open-telemetry/main.ts
 */
import assert from "node:assert/strict";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { MemoryStore, State, StateGraph } from "waymark";
import { openTelemetry, runSpanContext } from "waymark/observers/otel";

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

let printer = "jammed";
const graph = new StateGraph<{ secret: string }>({
  name: "letter",
  observer: openTelemetry({ tracer: provider.getTracer("letters") }),
  checkpoint: { store: new MemoryStore(), interval: 1, preserve: true },
})
  .addNode("write", (_state, context) => {
    context.ledger.usage({ inputTokens: 120, outputTokens: 480, costUsd: 0.0075 });
    return { secret: "I love stones" };
  })
  .addNode(
    "print",
    (state, { attempt }) => {
      if (printer === "jammed" || attempt === 1) throw new Error(`no ink for ${state.data.secret}`);
      return state;
    },
    { retry: { maxAttempts: 2, initialInterval: 1 } },
  )
  .addNode("send", (state) => state)
  .addEdge("write", "print")
  .addEdge("print", "send")
  .setEntryPoint("write")
  .setExitPoint("send");

await assert.rejects(graph.execute(State.create({ secret: "" }, { runId: "letter-1" })), /no ink/);
printer = "mended";
await graph.resume("letter-1");

/** Prints the spans below one, each with what it says. */
function print(spans: readonly ReadableSpan[], parent: string, indent = ""): void {
  const below = spans.filter((span) => span.parentSpanContext?.spanId === parent);
  for (const span of below) {
    const { spanId } = span.spanContext();
    const said = Object.entries(span.attributes).filter(([name]) => shown.has(name));
    const facts = said.map(([name, value]) => `${name.replace("waymark.", "")}=${value}`);
    const linked = span.links.map(({ attributes }) => `link=${attributes?.["waymark.link"]}`);
    console.log([`${indent}${span.name}`.padEnd(18), ...facts, ...linked].join("  ").trimEnd());
    for (const { name } of span.events) console.log(`${indent}    * ${name}`);
    print(spans, spanId, `${indent}  `);
  }
}

const shown = new Set([
  "waymark.status",
  "waymark.attempt",
  "gen_ai.usage.input_tokens",
  "gen_ai.usage.output_tokens",
  "gen_ai.usage.cost",
  "error.type",
]);

const spans = exporter.getFinishedSpans();
const place = runSpanContext("letter-1");
console.log(`trace ${place.traceId}`);
print(spans, place.spanId, "  ");

const names = spans.map((span) => span.name).sort();
assert.deepEqual(names, [
  "node print",
  "node print",
  "node send",
  "node write",
  "run letter",
  "run letter",
]);
assert.ok(
  spans.every((span) => span.spanContext().traceId === place.traceId),
  "one trace",
);
const said = JSON.stringify(
  spans.map(({ attributes, events, status }) => [attributes, events, status]),
);
assert.ok(!said.includes("stones"), "nothing of the State is in it");
const resumed = spans.find((span) => span.attributes["waymark.resumed"] === true);
assert.equal(resumed?.links.length, 1, "the resumed run links to the one before");
