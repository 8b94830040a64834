import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { State } from "waymark";
import { NewestLog, type StepLog, type StepRecord } from "../../src/state/steps.js";
import { serializationError } from "../matchers.js";

/** A step that is known by its number. */
function record(step: number): StepRecord {
  const at = new Date(step * 1000).toISOString();
  const times = { startedAt: at, completedAt: at, durationMs: 0 };
  return { node: `n${step}`, step, phase: "", ...times, attempts: 1 };
}

const numbers = (log: StepLog): number[] => log.list().map(({ step }) => step);

/** The steps from one to another. */
const upTo = (first: number, last: number): number[] =>
  Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);

describe("the list of steps", () => {
  test.each([
    [1, 5],
    [3, 2],
    [3, 3],
    [3, 50],
    [100, 250],
  ])("remembers the newest %i of %i, oldest first", (most, steps) => {
    let log = NewestLog.of<StepRecord>([], 100).withLimit(most);
    for (const step of upTo(1, steps)) log = log.with(record(step));
    expect(numbers(log)).toEqual(upTo(Math.max(1, steps - most + 1), steps));
  });

  test("of which none are remembered is empty", () => {
    const log = NewestLog.of<StepRecord>([], 100).withLimit(0).with(record(1));
    expect([log.isEmpty, log.list()]).toEqual([true, []]);
  });

  test("does not change for those who know it, whatever others add to it", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.tuple(fc.nat(20), fc.nat(1000)), { maxLength: 40 }),
        (most, changes) => {
          const logs = [NewestLog.of<StepRecord>([], 100).withLimit(most)];
          const models: number[][] = [[]];
          for (const [from, step] of changes) {
            const at = from % logs.length;
            logs.push((logs[at] as StepLog).with(record(step)));
            models.push([...(models[at] ?? []), step].slice(-most));
          }
          expect(logs.map(numbers)).toEqual(models);
        },
      ),
    );
  });

  test("is cut by a smaller limit, and grows again under a larger one", () => {
    let log = NewestLog.of(upTo(1, 9).map(record), 100).withLimit(3);
    expect(numbers(log)).toEqual([7, 8, 9]);
    log = log.withLimit(5).with(record(10)).with(record(11)).with(record(12));
    expect(numbers(log)).toEqual([8, 9, 10, 11, 12]);
  });
});

describe("a State", () => {
  const json = (steps: number) => ({
    ...State.create({ n: 0 }, { runId: "r" }).toJSON(),
    visits: { a: 2 },
    work: { a: { attempts: 3, durationMs: 17 } },
    steps: upTo(1, steps).map(record),
  });

  test.each([1, 100, 101, 500])("has all %i steps of its JSON, and gives them back", (steps) => {
    const state = State.fromJSON(JSON.stringify(json(steps)));
    expect(state.steps).toEqual(upTo(1, steps).map(record));
    expect(state.totals).toEqual({ a: { visits: 2, attempts: 3, durationMs: 17 } });
    expect(State.fromJSON(JSON.stringify(state)).toJSON()).toEqual(state.toJSON());
  });

  test("without steps has no steps and no totals, also in its JSON", () => {
    const state = State.create({ n: 0 });
    expect([state.steps, state.totals]).toEqual([[], {}]);
    expect(Object.keys(state.toJSON())).not.toContain("steps");
    expect(Object.keys(state.toJSON())).not.toContain("work");
  });

  test.each([
    ["no list", { steps: {} }, "state.steps"],
    ["a step without a node", { steps: [{ ...record(1), node: 1 }] }, "state.steps[0].node"],
    ["a negative step", { steps: [{ ...record(1), step: -1 }] }, "state.steps[0].step"],
    ["a wrong time", { steps: [{ ...record(1), completedAt: "x" }] }, "state.steps[0].completedAt"],
    ["half an attempt", { steps: [{ ...record(1), attempts: 0.5 }] }, "state.steps[0].attempts"],
    ["no work", { work: 5 }, "state.work"],
    ["work without attempts", { work: { a: { durationMs: 1 } } }, "state.work.a.attempts"],
  ])("is refused with %s", (_what, wrong, path) => {
    expect(() => State.fromJSON({ ...json(1), ...wrong } as never)).toThrow(
      serializationError(path),
    );
  });
});
