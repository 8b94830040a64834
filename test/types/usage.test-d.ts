import { expectTypeOf, test } from "vitest";
import { Ledger, type NodeContext } from "waymark";

declare const ledger: NodeContext["ledger"];

test("a misspelt counter does not compile; one's own go under counters or peaks", () => {
  ledger.usage({ inputTokens: 1, counters: { apiCalls: 3 }, peaks: { depth: 2 } });
  ledger.usage({ model: "small", price: { input: 1, output: 2 } });
  // @ts-expect-error misspelt
  ledger.usage({ inputToken: 1 });
  // @ts-expect-error one's own, in the wrong place
  Ledger.empty.addUsage("a", { apiCalls: 3 });
  expectTypeOf(Ledger.empty.usage.counters.apiCalls).toEqualTypeOf<number | undefined>();
});

test("the history of an agent's confidence is the ledger's to write", () => {
  ledger.agent("a", { confidence: 0.5, lastDecision: "go", outputRef: "a.md" });
  // @ts-expect-error not for the node
  ledger.agent("a", { confidenceHistory: [] });
});
