import { describe, expect, test } from "vitest";
import { State } from "waymark";
import { attemptEnded } from "../../src/run/position/continuation.js";
import { progressOf, withProgress } from "../../src/state/derive.js";

/** A run whose newest save counts this attempt to recover it. */
const recovered = (attempts: number): State<{ n: number }> =>
  withProgress(State.create({ n: 1 }), {
    status: "in_progress",
    reason: "recovery",
    recovery: { attempts, step: 1, results: 0 },
  });

describe("an attempt that is taken back", () => {
  test("counts no longer, and its run looks stopped", () => {
    const next = attemptEnded(recovered(2), 2, "taken-back");
    expect(next?.reason).toBe("abort");
    expect(next === undefined ? next : progressOf(next).recovery).toEqual({
      attempts: 1,
      step: 1,
      results: 0,
    });
  });

  test.each([
    ["was never made", 0],
    ["was followed by another", 1],
  ])("stays as it is if it %s", (_, attempt) => {
    expect(attemptEnded(recovered(attempt === 0 ? 0 : 2), attempt, "taken-back")).toBeUndefined();
  });

  test("stays as it is if the run was never recovered", () => {
    expect(attemptEnded(State.create({ n: 1 }), 1, "taken-back")).toBeUndefined();
  });
});
