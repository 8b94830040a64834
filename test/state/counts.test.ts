import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Counts, noCounts } from "../../src/state/counts.js";
import { collectGarbage } from "../graphs.js";

/** The visits, attempts and milliseconds of each node. */
type Model = ReadonlyMap<string, readonly [number, number, number]>;

function plus(model: Model, node: string, attempts: number, durationMs: number): Model {
  const [visits, tries, time] = model.get(node) ?? [0, 0, 0];
  return new Map(model).set(node, [visits + 1, tries + attempts, time + durationMs]);
}

function shown(counts: Counts) {
  return { visits: Object.entries(counts.visits()), work: Object.entries(counts.work()) };
}

function expected(model: Model): ReturnType<typeof shown> {
  return {
    visits: [...model].map(([node, [visits]]) => [node, visits]),
    work: [...model].map(([node, [, attempts, durationMs]]) => [node, { attempts, durationMs }]),
  };
}

/** So many steps after each other, over these nodes in turn. */
function stepped(counts: Counts, steps: number, ...nodes: readonly string[]): Counts {
  let sum = counts;
  for (let step = 0; step < steps; step += 1)
    sum = sum.with(nodes[step % nodes.length] ?? "", 1, 2);
  return sum;
}

describe("the counts of a run's nodes", () => {
  test("begin with nothing, for every run", () => {
    noCounts.with("a", 1, 5);
    expect(shown(noCounts)).toEqual({ visits: [], work: [] });
    expect(shown(noCounts.with("b", 1, 7)).visits).toEqual([["b", 1]]);
    expect(noCounts.visitsOf("a")).toBe(0);
  });

  test("leave out nodes that never completed", () => {
    const counts = Counts.of([
      ["a", 2, 5, 40],
      ["b", 0, 0, 0],
    ]);
    expect(counts.visits()).toEqual({ a: 2 });
    expect(counts.work()).toEqual({ a: { attempts: 5, durationMs: 40 } });
  });

  test("may be of a node with the name of a property", () => {
    const counts = Counts.of([["__proto__", 1, 1, 3]]).with("constructor", 2, 4);
    expect(shown(counts)).toEqual({
      visits: [
        ["__proto__", 1],
        ["constructor", 1],
      ],
      work: [
        ["__proto__", { attempts: 1, durationMs: 3 }],
        ["constructor", { attempts: 2, durationMs: 4 }],
      ],
    });
    expect([counts.visitsOf("constructor"), counts.visitsOf("toString")]).toEqual([1, 0]);
  });

  test.each([
    [noCounts.with("a", 0, 0), false],
    [noCounts.with("a", 0, 0).with("b", 1, 0), true],
  ])("tell whether more than visits was counted", (counts, hasWork) => {
    expect("work" in counts.toJSON()).toBe(hasWork);
  });

  test("stay what they were, whatever is added to any of them", () => {
    const step = fc.record({
      from: fc.nat({ max: 60 }),
      // Long enough to pass several logs, from anywhere.
      steps: fc.oneof(
        { weight: 4, arbitrary: fc.nat({ max: 4 }) },
        { weight: 1, arbitrary: fc.nat({ max: 700 }) },
      ),
      node: fc.constantFrom("a", "b", "c", "__proto__"),
      attempts: fc.nat({ max: 3 }),
      durationMs: fc.nat({ max: 1000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (changes) => {
        const known: Counts[] = [noCounts];
        const models: Model[] = [new Map()];
        for (const { from, steps, node, attempts, durationMs } of changes) {
          let counts = known[from % known.length] ?? noCounts;
          let model = models[from % known.length] ?? new Map();
          for (let at = 0; at <= steps; at += 1) {
            counts = counts.with(node, attempts, durationMs);
            model = plus(model, node, attempts, durationMs);
            if (at < 3 || at === steps) {
              known.push(counts);
              models.push(model);
            }
          }
        }
        known.forEach((counts, at) => {
          const model = models[at] ?? new Map();
          expect(shown(counts)).toEqual(expected(model));
          for (const node of ["a", "b", "c", "__proto__", "none"]) {
            expect(counts.visitsOf(node)).toBe(model.get(node)?.[0] ?? 0);
          }
        });
      }),
    );
  });

  test.each([1, 255, 256, 257])("of two that follow the same %i steps are their own", (steps) => {
    const both = stepped(noCounts, steps, "a");
    const one = both.with("b", 1, 1).with("c", 1, 1);
    const other = both.with("c", 1, 1).with("b", 1, 1);
    expect(Object.keys(one.visits())).toEqual(["a", "b", "c"]);
    expect(Object.keys(other.visits())).toEqual(["a", "c", "b"]);
    expect(both.visits()).toEqual({ a: steps });
  });

  test("of a million steps hold no more than those of a thousand, even beside the first", async () => {
    const first = noCounts.with("a", 1, 1);
    const few = stepped(first, 1000, "a");
    await collectGarbage();
    const before = process.memoryUsage().heapUsed;
    const many = stepped(few, 1_000_000, "a", "b", "c");
    await collectGarbage();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(2_000_000);
    const visits = [first, few, many].map((counts) => counts.visitsOf("a"));
    expect(visits).toEqual([1, 1001, 334_335]);
  });

  test("are exact when they are read at each step", () => {
    let counts = noCounts;
    let read = 0;
    for (let step = 0; step < 100_000; step += 1) {
      counts = counts.with(step % 2 === 0 ? "a" : "b", 1, 1);
      read += counts.visits().a ?? 0;
    }
    expect(read).toBe(2_500_050_000);
  });
});
