import { afterEach, beforeEach, expect, type MockInstance, test, vi } from "vitest";
import { type GraphConfig, State, StateGraph } from "waymark";
import { metrics } from "waymark/observers/metrics";
import { FileStore } from "waymark/stores/file";
import { resetWarnings } from "../src/warnings.js";
import { newFolder } from "./stores/folders.js";

let stderr: MockInstance<typeof process.stderr.write>;
beforeEach(() => {
  resetWarnings();
  stderr = vi.spyOn(process.stderr, "write").mockReturnValue(true);
});
afterEach(() => stderr.mockRestore());

const printed = (): string[] =>
  stderr.mock.calls.map(([text]) => String(text)).filter((text) => text.startsWith("waymark:"));

const graphOf = (config: GraphConfig<{ text: string }> = {}) =>
  new StateGraph<{ text: string }>({
    ...config,
    checkpoint: { store: new FileStore({ root: newFolder(), warnBytes: 600 }), interval: 1 },
  })
    .addNode("write", () => ({ text: "word ".repeat(200) }))
    .setEntryPoint("write")
    .setExitPoint("write");

test("a warning without a listener is printed once per kind", async () => {
  for (const runId of ["a", "b"]) await graphOf().execute(State.create({ text: "" }, { runId }));
  expect(printed()).toEqual([
    expect.stringMatching(/^waymark: run "a": the checkpoint has \d+ bytes, .*\n$/),
  ]);
});

test("a listener, an observer, or the observer noop silences it", async () => {
  const heard = vi.fn();
  const listened = graphOf().on("checkpoint.warning", heard);
  const others = [graphOf({ observer: () => {} }), graphOf({ observer: "noop" })];
  for (const graph of [listened, ...others]) await graph.execute(State.create({ text: "" }));
  expect(printed()).toEqual([]);
  expect(heard).toHaveBeenCalledOnce();
});

test("a store that is used without a graph prints it too", async () => {
  const store = new FileStore({ root: newFolder(), warnBytes: 100 });
  await store.save(State.create({ text: "word ".repeat(100) }, { runId: "alone" }));
  expect(printed()).toHaveLength(1);
});

test("without a process, nothing happens", async () => {
  vi.stubGlobal("process", undefined);
  const { printWarning } = await import("../src/warnings.js");
  expect(() => printWarning("r", { kind: "size", node: "", message: "large" })).not.toThrow();
  vi.unstubAllGlobals();
});

test("metrics count warnings apart from errors", async () => {
  const meter = metrics();
  await graphOf({ observer: meter }).execute(State.create({ text: "" }));
  expect(meter.snapshot().checkpoints).toMatchObject({ warnings: 1, errors: 0 });
  expect(meter.prometheus()).toContain("waymark_checkpoint_warnings_total 1");
});
