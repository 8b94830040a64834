import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  after as callAfter,
  inBackground,
  isoNow,
  monotonic,
  msBetween,
  now,
  sleep,
  useClock,
} from "../src/clock.js";

const stopped = { after: () => () => {} };

describe("time", () => {
  test("is that of the system", () => {
    const before = Date.now();
    expect(now()).toBeGreaterThanOrEqual(before);
    expect(Date.parse(isoNow())).toBeGreaterThanOrEqual(before);
  });

  test("is that of a replaced clock while it is in use", () => {
    const restoreFirst = useClock({ now: () => 1000, ...stopped });
    const restoreSecond = useClock({ now: () => 2000, ...stopped });
    expect([now(), isoNow()]).toEqual([2000, "1970-01-01T00:00:02.000Z"]);
    restoreSecond();
    expect([now(), isoNow()]).toEqual([1000, "1970-01-01T00:00:01.000Z"]);
    restoreFirst();
    expect(now()).toBeGreaterThan(2000);
  });

  test("between two timestamps is never below 0", () => {
    const [early, late] = ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.500Z"];
    expect(msBetween(early, late)).toBe(1500);
    expect(msBetween(early, early)).toBe(0);
    expect(msBetween(late, early)).toBe(0);
  });

  test("is formatted once for each millisecond", () => {
    let time = 5;
    const restore = useClock({ now: () => time, ...stopped });
    const format = vi.spyOn(Date.prototype, "toISOString");
    expect([isoNow(), isoNow()]).toEqual(["1970-01-01T00:00:00.005Z", "1970-01-01T00:00:00.005Z"]);
    time = 6;
    expect(isoNow()).toBe("1970-01-01T00:00:00.006Z");
    expect(format).toHaveBeenCalledTimes(2);
    restore();
    format.mockRestore();
  });
});

describe("waiting", () => {
  const day = 24 * 60 * 60 * 1000;

  beforeEach(() => {
    vi.useFakeTimers();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  test.each([1, day, 30 * day, 100 * day])("%d ms is neither shorter nor longer", (ms) => {
    const callback = vi.fn();
    callAfter(ms, callback);
    vi.advanceTimersByTime(ms - 1);
    expect(callback).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each([10, 30 * day])("%d ms can be called off", (ms) => {
    const callback = vi.fn();
    const cancel = callAfter(ms, callback);
    vi.advanceTimersByTime(ms - 1);
    cancel();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(day);
    expect(callback).not.toHaveBeenCalled();
  });

  test("sleep resolves in its time, and leaves nothing on the signal", async () => {
    const { signal } = new AbortController();
    const remove = vi.spyOn(signal, "removeEventListener");
    const slept = sleep(10, signal);
    vi.advanceTimersByTime(10);
    await expect(slept).resolves.toBeUndefined();
    expect(remove).toHaveBeenCalledTimes(1);
  });

  test("sleep rejects with the reason as soon as the signal aborts, before or during", async () => {
    const controller = new AbortController();
    const slept = sleep(10, controller.signal);
    controller.abort("stop");
    await expect(slept).rejects.toBe("stop");
    expect(vi.getTimerCount()).toBe(0);
    await expect(sleep(10, controller.signal)).rejects.toBe("stop");
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("the clock of leases", () => {
  test("is the system's if a clock has none of its own", async () => {
    const restore = useClock({ now: () => 7, after: () => () => {} });
    try {
      expect(Math.abs(monotonic() - performance.now())).toBeLessThan(60_000);
      await new Promise<void>((resolve) => inBackground(0, resolve));
    } finally {
      restore();
    }
  });

  test("is the one that was set", () => {
    const waits: number[] = [];
    const restore = useClock({
      now: () => 7,
      after: () => () => {},
      monotonic: () => 42,
      background: (ms) => {
        waits.push(ms);
        return () => waits.push(-ms);
      },
    });
    try {
      inBackground(5, () => {})();
      expect([monotonic(), ...waits]).toEqual([42, 5, -5]);
    } finally {
      restore();
    }
  });

  test("does not call back after it was cancelled", async () => {
    let isCalled = false;
    inBackground(0, () => {
      isCalled = true;
    })();
    await new Promise<void>((resolve) => inBackground(1, resolve));
    expect(isCalled).toBe(false);
  });
});
