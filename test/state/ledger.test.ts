import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Agent, type Decision, Ledger, type Usage } from "../../src/state/ledger.js";

const origin = { node: "draft", step: 3, timestamp: "2026-01-02T03:04:05.678Z" };
const decision = (description: string, more: Partial<Decision> = {}): Decision => ({
  ...origin,
  description,
  ...more,
});

describe("usage", () => {
  const zero = {
    inputTokens: 0,
    outputTokens: 0,
    costUsd: 0,
    memoryPeakMb: 0,
    counters: {},
    peaks: {},
  };

  test("adds up per run and per node", () => {
    const ledger = Ledger.empty
      .addUsage("a", { inputTokens: 10, outputTokens: 2, counters: { apiCalls: 1 } })
      .addUsage("b", { inputTokens: 5, costUsd: 0.25 })
      .addUsage("a", { inputTokens: 1, counters: { apiCalls: 2 } });
    const counters = { apiCalls: 3 };
    expect(ledger.usage).toEqual({
      ...zero,
      inputTokens: 16,
      outputTokens: 2,
      costUsd: 0.25,
      counters,
    });
    expect(ledger.nodes).toEqual({
      a: { ...zero, inputTokens: 11, outputTokens: 2, counters },
      b: { ...zero, inputTokens: 5, costUsd: 0.25 },
    });
  });

  test("peaks are the highest of all, not their sum", () => {
    const base = Ledger.empty.addUsage("a", { memoryPeakMb: 300, peaks: { depth: 2 } });
    const [low, high] = [
      base.addUsage("a", { memoryPeakMb: 200, peaks: { depth: 7 } }),
      base.addUsage("b", { memoryPeakMb: 400 }),
    ];
    expect(low.usage).toMatchObject({ memoryPeakMb: 300, peaks: { depth: 7 } });
    expect(low.merge(base, high).usage).toMatchObject({ memoryPeakMb: 400, peaks: { depth: 7 } });
    expect(low.usageSince(base)).toEqual({ peaks: { depth: 7 } });
    expect(high.usageSince(base)).toEqual({ memoryPeakMb: 400 });
    expect(Ledger.fromJSON(low.toJSON()).usage).toEqual(low.usage);
  });

  test("a price gives the cost, unless the cost is given", () => {
    const call = { inputTokens: 1000, outputTokens: 500, price: { input: 3, output: 15 } };
    expect(Ledger.empty.addUsage("a", call).usage.costUsd).toBe(0.0105);
    expect(Ledger.empty.addUsage("a", { ...call, costUsd: 0.01 }).usage.costUsd).toBe(0.01);
  });

  test("sums of cents are exact", () => {
    let ledger = Ledger.empty;
    for (let call = 0; call < 1000; call++) ledger = ledger.addUsage("a", { costUsd: 0.1 });
    expect(ledger.usage.costUsd).toBe(100);
    expect(
      Ledger.empty.addUsage("a", { costUsd: 0.1 }).addUsage("b", { costUsd: 0.2 }).usage.costUsd,
    ).toBe(0.3);
    // What a caller computed with floating point noise is what they meant.
    expect(Ledger.empty.addUsage("a", { costUsd: 0.1 * 3 }).usage.costUsd).toBe(0.3);
    expect(Ledger.empty.addUsage("a", { costUsd: 1.5e-7 }).usage.costUsd).toBe(1.5e-7);
    expect(Ledger.empty.addUsage("a", { costUsd: 4e-13 }).usage.costUsd).toBe(0);
    expect(Ledger.empty.addUsage("a", { costUsd: 6e-13 }).usage.costUsd).toBe(1e-12);
    expect(Ledger.empty.addUsage("a", { costUsd: 0.7 + 0.1 }).usage.costUsd).toBe(0.8);
  });

  test("is exact beyond what a number can hold", () => {
    const most = { inputTokens: Number.MAX_SAFE_INTEGER };
    const ledger = Ledger.empty
      .addUsage("a", most)
      .addUsage("a", most)
      .addUsage("a", { inputTokens: 3 });
    const json = JSON.parse(JSON.stringify(ledger));
    expect(json).toEqual({ usage: { a: { inputTokens: "18014398509481985.000000000000" } } });
    const again = Ledger.fromJSON(json).addUsage("a", { inputTokens: 1 });
    expect(again.toJSON()).toEqual({
      usage: { a: { inputTokens: "18014398509481986.000000000000" } },
    });
  });

  test("adding no usage changes nothing", () => {
    expect(Ledger.empty.addUsage("a", {})).toBe(Ledger.empty);
    expect(Ledger.empty.addUsage("a", { inputTokens: 0, costUsd: undefined })).toBe(Ledger.empty);
  });

  test.each([
    [{ inputTokens: -1 }, "usage.inputTokens must be an integer ≥ 0; got -1"],
    [{ outputTokens: 1.5 }, "usage.outputTokens must be an integer ≥ 0; got 1.5"],
    [{ costUsd: Number.NaN }, "usage.costUsd must be a number from 0 to 9007199254740991; got NaN"],
    [{ memoryPeakMb: -1 }, "usage.memoryPeakMb must be a number from 0"],
    [{ inputToken: 1 }, "usage.inputToken is not an option; the options are inputTokens,"],
    [{ counters: { calls: Infinity } }, "usage.counters.calls must be a number from 0"],
    [
      { counters: { calls: "3" } },
      "usage.counters.calls must be a number from 0 to 9007199254740991",
    ],
    [{ peaks: [1] }, "usage.peaks must be an object of numbers; got an array"],
    [{ price: { input: 3 } }, "usage.price.output must be a number from 0"],
    [{ model: "" }, "usage.model must be a non-empty string"],
    [null, "usage must be an object of options; got null"],
    [[1], "usage must be an object of options; got an array"],
  ])("refuses %j", (usage, message) => {
    expect(() => Ledger.empty.addUsage("a", usage as Usage)).toThrow(message);
  });

  test("a counter or a node may have any name", () => {
    const counters = JSON.parse('{"__proto__": 2, "$date": 3}');
    const ledger = Ledger.empty
      .addUsage("__proto__", { counters })
      .addUsage("$map", { counters: { $set: 1 } });
    expect(Object.keys(ledger.nodes)).toEqual(["__proto__", "$map"]);
    expect(Object.entries(ledger.usage.counters)).toEqual([
      ["__proto__", 2],
      ["$date", 3],
      ["$set", 1],
    ]);
    const again = Ledger.fromJSON(JSON.parse(JSON.stringify(ledger)));
    expect(Object.entries(again.usage.counters)).toEqual(Object.entries(ledger.usage.counters));
    expect({}).not.toHaveProperty("$date");
  });

  test("returns the usage since another ledger", () => {
    const base = Ledger.empty.addUsage("a", { inputTokens: 5 });
    expect(base.usageSince(base)).toBeUndefined();
    expect(base.addDecision(decision("x")).usageSince(base)).toBeUndefined();
    const used = { costUsd: 0.1, counters: { calls: 1 } };
    expect(base.addUsage("b", used).usageSince(base)).toEqual(used);
  });
});

describe("decisions, agents and outputs", () => {
  test("keeps decisions in order, frozen, and copies what it is given", () => {
    const alternatives = ["wait"];
    const ledger = Ledger.empty
      .addDecision(decision("first", { alternatives, rationale: "because", confidence: 0.5 }))
      .addDecision(decision("second"));
    alternatives.push("later");
    expect(ledger.decisions).toEqual([
      {
        ...origin,
        description: "first",
        alternatives: ["wait"],
        rationale: "because",
        confidence: 0.5,
      },
      { ...origin, description: "second" },
    ]);
    expect(Object.isFrozen(ledger)).toBe(true);
    expect(Object.isFrozen(ledger.decisions)).toBe(true);
    expect(Object.isFrozen(ledger.decisions[0]?.alternatives)).toBe(true);
    expect(Object.isFrozen(ledger.usage)).toBe(true);
  });

  test.each([
    [{ description: "" }, "decision.description must be a non-empty string"],
    [{ description: undefined }, "decision.description must be given; got undefined"],
    [{ confidence: 1.1 }, "decision.confidence must be a number from 0 to 1; got 1.1"],
    [{ confidence: Number.NaN }, "decision.confidence must be a number from 0 to 1; got NaN"],
    [{ alternatives: "none" }, 'decision.alternatives must be an array of strings; got "none"'],
    [{ rational: "x" }, "decision.rational is not an option"],
    [{ node: undefined }, "decision.node must be given; got undefined"],
  ])("refuses a decision with %j", (wrong, message) => {
    const given = { ...decision("ok"), ...wrong } as Decision;
    expect(() => Ledger.empty.addDecision(given)).toThrow(message);
  });

  test("an agent keeps the fields that are not set again", () => {
    const ledger = Ledger.empty
      .setAgent("atlas", { ...origin, type: "planner", status: "active", confidence: 0.9 })
      .setAgent("atlas", { ...origin, step: 4, status: "done", confidence: undefined } as never);
    expect(ledger.agents.atlas).toEqual({
      ...origin,
      step: 4,
      type: "planner",
      status: "done",
      confidence: 0.9,
      confidenceHistory: [{ confidence: 0.9, step: 3, timestamp: origin.timestamp }],
    });
  });

  test("an agent has its last decision, and the newest 100 confidences", () => {
    let ledger = Ledger.empty.setAgent("atlas", { ...origin, outputRef: "out/atlas.md" });
    for (let step = 0; step < 120; step++)
      ledger = ledger.setAgent("atlas", { ...origin, step, confidence: step / 200 });
    const decided = ledger.addDecision(decision("go", { type: "routing", agent: "atlas" }));
    expect(decided.decisions[0]?.type).toBe("routing");
    const { lastDecision, outputRef, confidence, confidenceHistory } = decided.agents.atlas ?? {};
    expect({ lastDecision, outputRef, confidence }).toEqual({
      lastDecision: "go",
      outputRef: "out/atlas.md",
      confidence: 119 / 200,
    });
    expect(confidenceHistory?.map(({ step }) => step)).toEqual(
      Array.from({ length: 100 }, (_, index) => index + 20),
    );
    expect(decided.addDecision(decision("x", { agent: "nobody" })).agents).not.toHaveProperty(
      "nobody",
    );
  });

  test("branches that set one agent keep the confidences of both", () => {
    const at = (second: number) => ({ ...origin, timestamp: `2026-01-01T00:00:0${second}.000Z` });
    const base = Ledger.empty.setAgent("a", { ...at(0), confidence: 0.1 });
    const one = base.setAgent("a", { ...at(2), confidence: 0.3 });
    const two = base.setAgent("a", { ...at(1), confidence: 0.2 });
    const merged = base.merge(base, one).merge(base, two);
    expect(merged.agents.a?.confidence).toBe(0.2);
    expect(merged.agents.a?.confidenceHistory?.map((record) => record.confidence)).toEqual([
      0.1, 0.2, 0.3,
    ]);
  });

  test("refuses an agent's state and an output that can't be saved, by its path", () => {
    const state = { inner: { handler: () => {} } };
    expect(() => Ledger.empty.setAgent("a", { ...origin, state })).toThrow(
      "agent.state.inner.handler is the function handler",
    );
    expect(() => Ledger.empty.setOutput("o", { ...origin, ref: Symbol("x") })).toThrow(
      "output.ref is Symbol(x)",
    );
    expect(() => Ledger.empty.setOutput("o", { ...origin, ref: undefined })).toThrow(
      "output.ref must be given",
    );
    expect(() => Ledger.empty.setAgent("", { ...origin })).toThrow("id must be a non-empty string");
    expect(() => Ledger.empty.setAgent("a", "busy" as unknown as Agent)).toThrow(
      'agent must be an object of options; got "busy"',
    );
  });

  test("confidence is the lowest of the agents and of the newest decision that has one", () => {
    expect(Ledger.empty.confidence).toBeUndefined();
    const decided = Ledger.empty
      .addDecision(decision("unsure", { confidence: 0.2 }))
      .addDecision(decision("sure", { confidence: 0.8 }))
      .addDecision(decision("silent"));
    expect(decided.confidence).toBe(0.8);
    expect(decided.setAgent("a", { ...origin, confidence: 0.6 }).confidence).toBe(0.6);
    expect(decided.setAgent("a", { ...origin, confidence: 0.9 }).confidence).toBe(0.8);
  });
});

describe("limits", () => {
  test("the newest decisions stay, the rest are counted", () => {
    let ledger = Ledger.empty.withLimits({ maxDecisions: 2 });
    for (const name of ["a", "b", "c", "d"]) ledger = ledger.addDecision(decision(name));
    expect(ledger.decisions.map((one) => one.description)).toEqual(["c", "d"]);
    expect(ledger.dropped).toEqual({ decisions: 2, agents: 0, outputs: 0 });
    expect(ledger.withLimits({ maxDecisions: 0 }).decisions).toEqual([]);
  });

  test("the agents and outputs that were set last stay, whatever their names", () => {
    let ledger = Ledger.empty.withLimits({ maxAgents: 2, maxOutputs: 1 });
    for (const [at, name] of ["9", "zed", "1"].entries()) {
      const when = { ...origin, timestamp: `2026-01-01T00:00:0${at}.000Z` };
      ledger = ledger.setAgent(name, when).setOutput(name, { ...when, ref: at });
    }
    expect(Object.keys(ledger.agents).sort()).toEqual(["1", "zed"]);
    expect(Object.keys(ledger.outputs)).toEqual(["1"]);
    expect(ledger.dropped).toEqual({ decisions: 0, agents: 1, outputs: 2 });
    const again = Ledger.fromJSON(ledger.toJSON());
    expect(again.toJSON()).toEqual(ledger.toJSON());
    expect(again.setOutput("new", { ...origin, timestamp: "2027", ref: 1 }).dropped.outputs).toBe(
      3,
    );
  });

  test("the defaults change nothing", () => {
    expect(Ledger.empty.withLimits({})).toBe(Ledger.empty);
    expect(() => Ledger.empty.withLimits({ maxDecisions: -1 })).toThrow(
      "limits.maxDecisions must be an integer ≥ 0; got -1",
    );
  });
});

describe("JSON", () => {
  test("an empty ledger is the one empty ledger", () => {
    expect(Ledger.empty.isEmpty).toBe(true);
    expect(JSON.stringify(Ledger.empty)).toBe("{}");
    expect(Ledger.fromJSON({})).toBe(Ledger.empty);
  });

  test("is restored exactly, with the types of its values", () => {
    const ledger = Ledger.empty
      .addUsage("a", { costUsd: 0.123456789012, counters: { calls: 2 }, peaks: { depth: 3 } })
      .addDecision(decision("go", { confidence: 1, agent: "atlas" }))
      .setAgent("$date", { ...origin, state: { at: new Date(0), seen: new Set([1n]) } })
      .setOutput("bytes", { ...origin, ref: new Uint8Array([1, 2]) })
      .withLimits({ maxDecisions: 7 });
    const text = JSON.stringify(ledger);
    const again = Ledger.fromJSON(JSON.parse(text));
    expect(JSON.stringify(again)).toBe(text);
    expect(again.agents.$date?.state).toEqual({ at: new Date(0), seen: new Set([1n]) });
    expect(again.outputs.bytes?.ref).toEqual(new Uint8Array([1, 2]));
    expect(again.nodes).toEqual(ledger.nodes);
    expect(again.isEmpty).toBe(false);
  });

  test("shares nothing with its caller", () => {
    const json = { agents: { a: { ...origin, state: { deep: [1] } } } };
    const ledger = Ledger.fromJSON(json);
    json.agents.a.state.deep.push(2);
    expect(ledger.agents.a?.state).toEqual({ deep: [1] });
    expect(Object.isFrozen(json.agents)).toBe(false);
  });

  test.each([
    [null, "ledger must be an object"],
    [() => {}, "ledger is not JSON"],
    [{ usages: {} }, "ledger.usages is not an option"],
    [{ usage: { a: { costUsd: -1 } } }, "ledger.usage.a.costUsd must be a number from 0"],
    [{ usage: { a: { costUsd: "1" } } }, "ledger.usage.a.costUsd must be a number from 0"],
    [{ usage: 3 }, "ledger.usage must be an object; got 3"],
    [{ decisions: {} }, "ledger.decisions must be an array; got an object"],
    [{ decisions: [{ ...origin }] }, "ledger.decisions[0].description must be given"],
    [
      { agents: { a: { ...origin, confidence: 2 } } },
      "ledger.agents.a.confidence must be a number",
    ],
    [
      { agents: { a: { ...origin, state: { $no: 1 } } } },
      'ledger.agents.a.state holds the unknown tag "$no"',
    ],
    [{ agents: { $set: [1] } }, "ledger.agents must be an object; got a Set"],
    [{ outputs: { a: { ...origin } } }, "ledger.outputs.a.ref must be given"],
    [{ dropped: { decisions: -1 } }, "ledger.dropped.decisions must be an integer"],
  ])("refuses %j", (json, message) => {
    expect(() => Ledger.fromJSON(json)).toThrow(message);
    expect(() => Ledger.fromJSON(json)).toThrow(expect.objectContaining({ code: "SERIALIZATION" }));
  });
});

/** A change that a branch makes to its ledger. */
type Change = (ledger: Ledger) => Ledger;

const name = fc.constantFrom("a", "b", "c", "__proto__");
const cost = fc.oneof(
  fc.integer({ min: 0, max: 10_000 }).map((cents) => cents / 100),
  fc.double({ min: 0, max: 1e9, noNaN: true }),
);
const usageChange = fc
  .record({
    node: name,
    inputTokens: fc.nat(),
    costUsd: cost,
    memoryPeakMb: fc.option(cost, { nil: undefined }),
    counters: fc.record({ calls: fc.option(fc.nat(), { nil: undefined }) }),
    peaks: fc.record({ depth: fc.option(fc.nat(), { nil: undefined }) }),
  })
  .map(
    ({ node, ...usage }): Change =>
      (ledger) =>
        ledger.addUsage(node, usage),
  );
const otherChange = fc.oneof(
  fc.string({ minLength: 1 }).map(
    (text): Change =>
      (ledger) =>
        ledger.addDecision(decision(text)),
  ),
  fc.tuple(name, fc.nat()).map(
    ([id, state]): Change =>
      (ledger) =>
        ledger.setAgent(id, { ...origin, state }),
  ),
  fc.tuple(name, fc.jsonValue()).map(
    ([id, ref]): Change =>
      (ledger) =>
        ledger.setOutput(id, { ...origin, ref }),
  ),
);
const changes = fc.array(fc.oneof(usageChange, otherChange), { maxLength: 8 });
const ranks = fc.array(fc.nat(), { minLength: 4, maxLength: 4 });
const apply = (ledger: Ledger, list: readonly Change[]): Ledger =>
  list.reduce((before, change) => change(before), ledger);
const usageOf = (ledger: Ledger): unknown => ledger.toJSON().usage ?? {};

describe("merging", () => {
  test("usage of branches is the same in whatever order they are merged", () => {
    fc.assert(
      fc.property(changes, fc.array(changes, { maxLength: 4 }), ranks, (first, lists, order) => {
        const base = apply(Ledger.empty, first);
        const branches = lists.map((list) => apply(base, list));
        const rank = (branch: Ledger): number => order[branches.indexOf(branch)] ?? 0;
        const shuffled = branches.toSorted((a, b) => rank(a) - rank(b));
        const merge = (list: readonly Ledger[]): Ledger =>
          list.reduce((sum, branch) => sum.merge(base, branch), base);
        const merged = merge(branches);
        expect(usageOf(merge(shuffled))).toEqual(usageOf(merged));
        expect(usageOf(merged)).toEqual(usageOf(apply(base, lists.flat())));
      }),
    );
  });

  test("usage is the same however branches are grouped", () => {
    fc.assert(
      fc.property(changes, changes, changes, changes, (first, one, two, three) => {
        const base = apply(Ledger.empty, first);
        const [a, b, c] = [apply(base, one), apply(base, two), apply(base, three)];
        const left = a.merge(base, b).merge(base, c);
        const right = a.merge(base, b.merge(base, c));
        expect(usageOf(left)).toEqual(usageOf(right));
        expect(left.decisions).toEqual(right.decisions);
      }),
    );
  });

  test("merging consecutive branches equals one branch that did everything", () => {
    fc.assert(
      fc.property(changes, changes, changes, (first, one, two) => {
        const base = apply(Ledger.empty, first);
        const merged = base.merge(base, apply(base, one)).merge(base, apply(base, two));
        expect(merged.toJSON()).toEqual(apply(base, [...one, ...two]).toJSON());
      }),
    );
  });

  test("merging nothing changes nothing", () => {
    fc.assert(
      fc.property(changes, changes, (first, one) => {
        const base = apply(Ledger.empty, first);
        const branch = apply(base, one);
        expect(base.merge(base, branch)).toBe(branch);
        expect(branch.merge(base, base)).toBe(branch);
        expect(base.merge(branch, branch)).toBe(base);
      }),
    );
  });

  test("what limits cost a branch is counted in the whole", () => {
    const base = Ledger.empty.withLimits({ maxDecisions: 2 }).addDecision(decision("0"));
    const one = ["a", "b", "c"].reduce((sum, text) => sum.addDecision(decision(text)), base);
    const two = base.addDecision(decision("d"));
    const merged = base.merge(base, two).merge(base, one);
    expect(merged.decisions.map((entry) => entry.description)).toEqual(["b", "c"]);
    expect(merged.dropped.decisions).toBe(3);
  });

  test("every ledger is restored exactly from JSON", () => {
    fc.assert(
      fc.property(changes, (list) => {
        const ledger = apply(Ledger.empty, list);
        const again = Ledger.fromJSON(JSON.parse(JSON.stringify(ledger)));
        expect(again.toJSON()).toEqual(ledger.toJSON());
        expect(Object.entries(again.usage)).toEqual(Object.entries(ledger.usage));
        expect(again.agents).toEqual(ledger.agents);
        expect(again.outputs).toEqual(ledger.outputs);
      }),
    );
  });
});

test("console.log shows what is in a ledger", () => {
  const ledger = Ledger.empty.addUsage("draft", { inputTokens: 900 });
  expect(inspect(ledger)).toContain("inputTokens: 900");
  expect(inspect(ledger)).toContain("decisions: []");
});
