import { expect, test } from "vitest";
import { State } from "waymark";
import { useFakeClock } from "waymark/testing";
import { sleep } from "../../src/clock.js";
import { configError } from "../matchers.js";

test("stands still until it is advanced, and calls back in order", async () => {
  const clock = useFakeClock(1000);
  try {
    const done: string[] = [];
    for (const ms of [30, 10, 20]) void sleep(ms).then(() => done.push(`${ms}`));
    expect([State.create({}).timestamp, clock.waiting]).toEqual(["1970-01-01T00:00:01.000Z", 3]);
    await clock.advance(20);
    expect([done.join(), clock.waiting]).toEqual(["10,20", 1]);
    await clock.advance(0);
    expect(State.create({}).timestamp).toBe("1970-01-01T00:00:01.020Z");
    await clock.advance(10);
    expect([done.join(), clock.waiting]).toEqual(["10,20,30", 0]);
  } finally {
    clock.restore();
  }
});

test.each<[unknown]>([
  [Number.NaN],
  [Number.POSITIVE_INFINITY],
  [9e15],
  ["2030-01-01"],
  [new Date(0)],
])("refuses to start at %s, and leaves the clock as it was", (start) => {
  expect(() => useFakeClock(start as number)).toThrow(configError("start"));
  expect(Date.parse(State.create({}).timestamp)).toBeGreaterThan(1e12);
});

test.each<[unknown]>([[Number.NaN], [-1], ["5"], [undefined], [Number.POSITIVE_INFINITY]])(
  "refuses to be moved by %s",
  async (ms) => {
    const clock = useFakeClock(1000);
    try {
      await expect(clock.advance(ms as number)).rejects.toThrow(configError("ms"));
      expect(State.create({}).timestamp).toBe("1970-01-01T00:00:01.000Z");
    } finally {
      clock.restore();
    }
  },
);
