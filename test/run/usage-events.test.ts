import { expect, test, vi } from "vitest";
import { type AnyEvent, MemoryStore, State, StateGraph, type Usage } from "waymark";

const call = {
  inputTokens: 1000,
  outputTokens: 200,
  model: "small",
  price: { input: 1, output: 5 },
  counters: { searches: 2 },
};

const graph = (usage: Usage) =>
  new StateGraph<{ n: number }>({
    name: "calls",
    checkpoint: { store: new MemoryStore(), interval: 1, preserve: true },
  })
    .addNode("ask", (_state, { ledger }) => {
      ledger.usage(usage);
      ledger.usage({ memoryPeakMb: 80 });
      ledger.usage({ memoryPeakMb: 60, inputTokens: 1 });
      return { n: 1 };
    })
    .setEntryPoint("ask")
    .setExitPoint("ask");

test("each call emits an event with its model and price, and the step has the sum", async () => {
  const events: AnyEvent["data"][] = [];
  const state = await graph(call)
    .on("usage", ({ data }) => events.push(data))
    .execute(State.create({ n: 0 }));
  const at = { node: "ask", step: 0 };
  expect(events).toEqual([
    { ...at, ...call },
    { ...at, memoryPeakMb: 80 },
    { ...at, memoryPeakMb: 60, inputTokens: 1 },
  ]);
  const used = {
    inputTokens: 1001,
    outputTokens: 200,
    costUsd: 0.002,
    memoryPeakMb: 80,
    counters: { searches: 2 },
  };
  expect(state.steps[0]?.usage).toEqual(used);
  expect(state.totals.ask?.usage).toEqual({ ...used, peaks: {} });
});

test("a misspelt counter fails the node before anything is counted", async () => {
  const misspelt = { inputToken: 5 } as Usage;
  const heard = vi.fn();
  await expect(
    graph(misspelt)
      .on("usage", heard)
      .execute(State.create({ n: 0 })),
  ).rejects.toThrow("usage.inputToken is not an option");
  expect(heard).not.toHaveBeenCalled();
});
