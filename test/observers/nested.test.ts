import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, describe, expect, test } from "vitest";
import { MemoryStore, type Observer, State, StateGraph, subgraph } from "waymark";
import { eventLog, type LogLine, readEventLog } from "waymark/observers/event-log";
import { loggerObserver } from "waymark/observers/logger";
import { markdownProgress } from "waymark/observers/markdown";
import { openTelemetry } from "waymark/observers/otel";
import { report as runReport } from "waymark/report";

interface Count {
  n: number;
}

const root = mkdtempSync(join(tmpdir(), "waymark-nested-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Runs a graph with another one inside its node `outer`, both with the same observer. */
async function run(observer: Observer, runId: string): Promise<MemoryStore> {
  const store = new MemoryStore({ keep: 20 });
  const inner = new StateGraph<Count>({ name: "small", observer })
    .addNode("inner", (state, context) => {
      context.ledger.usage({ inputTokens: 10, costUsd: 2 });
      context.progress({ title: "Inside", summary: "One." });
      return { n: state.data.n + 1 };
    })
    .setEntryPoint("inner")
    .setExitPoint("inner");
  const checkpoint = { store, interval: 1, preserve: true };
  await new StateGraph<Count>({ name: "large", observer, checkpoint })
    .addNode(
      "outer",
      subgraph<Count, Count, "inner">(inner, {
        in: ({ data }) => ({ n: data.n }),
        out: (_state, { data }) => ({ n: data.n }),
      }),
    )
    .setEntryPoint("outer")
    .setExitPoint("outer")
    .execute(State.create({ n: 0 }, { runId }));
  return store;
}

describe("events of a graph inside a node", () => {
  test("are in the log of the outermost run, once and with their path", async () => {
    const log = eventLog({ root });
    const store = await run(log, "logged");
    await log.close();
    const lines: LogLine[] = [];
    for await (const line of readEventLog({ root }, "logged")) lines.push(line);
    const nodes = lines.filter(({ event }) => event === "node.complete");
    expect(nodes.map(({ node, path, inner_run }) => ({ node, path, inner_run }))).toEqual([
      { node: "inner", path: ["outer", "inner"], inner_run: "logged:0:outer" },
      { node: "outer" },
    ]);
    expect(lines.at(-1)?.event).toBe("graph.complete");
    expect(readdirSync(root)).toEqual(["logged"]);
    for (const from of [{ store }, {}]) {
      const report = await runReport("logged", { ...from, log: { root } });
      expect(report.steps.map(({ node }) => node)).toEqual(["outer"]);
      expect(report.totals.usage).toMatchObject({ inputTokens: 10, costUsd: 2 });
    }
  });

  test("are child spans of their node, which alone has the usage", async () => {
    const exporter = new InMemorySpanExporter();
    const processor = new SimpleSpanProcessor(exporter);
    const tracer = new BasicTracerProvider({ spanProcessors: [processor] }).getTracer("test");
    await run(openTelemetry({ tracer }), "traced");
    const spans = new Map(exporter.getFinishedSpans().map((span) => [span.name, span]));
    const parentOf = (name: string) => spans.get(name)?.parentSpanContext?.spanId;
    expect([...spans.keys()].sort()).toEqual([
      "node inner",
      "node outer",
      "run large",
      "run small",
    ]);
    expect(parentOf("run small")).toBe(spans.get("node outer")?.spanContext().spanId);
    expect(parentOf("node inner")).toBe(spans.get("run small")?.spanContext().spanId);
    expect(parentOf("node outer")).toBe(spans.get("run large")?.spanContext().spanId);
    expect(spans.get("run small")?.attributes).toMatchObject({ "waymark.path": ["outer"] });
    const usage = [...spans].filter(([, span]) => "gen_ai.usage.cost" in span.attributes);
    expect(usage.map(([name]) => name).sort()).toEqual(["node outer", "run large"]);
    expect(spans.get("run small")?.events).toEqual([]);
  });

  test("are logged with their path", async () => {
    const lines: { event: string; path?: readonly string[]; rootRun?: string }[] = [];
    const info = (fields: unknown): unknown => lines.push(fields as (typeof lines)[number]);
    await run(loggerObserver({ info, warn: info, error: info }), "said");
    const starts = lines.filter(({ event }) => event === "node.start");
    expect(starts.map(({ path, rootRun }) => ({ path, rootRun }))).toEqual([
      {},
      { path: ["outer", "inner"], rootRun: "said" },
    ]);
  });

  test("are sections of the outermost run's report", async () => {
    const folder = mkdtempSync(join(tmpdir(), "waymark-nested-"));
    const report = markdownProgress({ root: folder });
    await run(report, "written");
    await report.close();
    const text = readFileSync(join(folder, "written", "progress.md"), "utf8");
    expect(text.match(/## Inside/g)).toHaveLength(1);
    expect(readdirSync(folder)).toEqual(["written"]);
    rmSync(folder, { recursive: true });
  });
});
