import { expect, test } from "vitest";
import { Batcher, type BatcherOptions, CoalescedRead, Semaphore } from "../src/concurrency.js";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a semaphore runs so many actions at a time, in their order, also past one that fails", async () => {
  const semaphore = new Semaphore(2);
  const started: number[] = [];
  const ends: (() => void)[] = [];
  const actions = [0, 1, 2, 3].map((n) =>
    semaphore.run(async () => {
      started.push(n);
      await new Promise<void>((resolve) => ends.push(resolve));
      if (n === 0) throw new Error("first");
      return n;
    }),
  );
  const settled = Promise.allSettled(actions);
  await turn();
  expect(started).toEqual([0, 1]);
  ends[0]?.();
  await turn();
  expect(started).toEqual([0, 1, 2]);
  for (const n of [1, 2]) ends[n]?.();
  await turn();
  ends[3]?.();
  expect((await settled).map(({ status }) => status)).toEqual([
    "rejected",
    "fulfilled",
    "fulfilled",
    "fulfilled",
  ]);
  expect(await semaphore.run(async () => "free")).toBe("free");
});

test("what is read for all who ask is never older than their asking", async () => {
  const begun: (() => void)[] = [];
  let reads = 0;
  const shared = new CoalescedRead(async () => {
    const number = ++reads;
    await new Promise<void>((resolve) => begun.push(resolve));
    if (number === 2) throw new Error("second");
    return number;
  });
  const first = shared.get();
  await turn();
  const later = [shared.get(), shared.get()];
  await turn();
  expect(reads).toBe(1);
  begun[0]?.();
  expect(await first).toBe(1);
  await turn();
  begun[1]?.();
  expect((await Promise.allSettled(later)).map(({ status }) => status)).toEqual([
    "rejected",
    "rejected",
  ]);
  const last = shared.get();
  await turn();
  begun[2]?.();
  expect(await last).toBe(3);
});

/** A batcher that notes its batches, and holds each back until it is let go. */
function held(options: Partial<BatcherOptions<number, string>> = {}) {
  const batches: number[][] = [];
  const waiting: (() => void)[] = [];
  const batcher = new Batcher<number, string>({
    async many(items) {
      batches.push([...items]);
      await new Promise<void>((resolve) => waiting.push(resolve));
      return items.map(String);
    },
    ...options,
  });
  const letGo = (): void => {
    for (const resolve of waiting.splice(0)) resolve();
  };
  return { batcher, batches, letGo };
}

test("a batcher does an item at once, and together those that come while others are under way", async () => {
  const { batcher, batches, letGo } = held({ maxRunning: 1, maxItems: 3 });
  const results = Promise.all([1, 2, 3, 4, 5].map((item) => batcher.run(item)));
  for (let round = 0; round < 3; round++) {
    await turn();
    letGo();
  }
  expect(await results).toEqual(["1", "2", "3", "4", "5"]);
  expect(batches).toEqual([[1], [2, 3, 4], [5]]);
});

test("a batch is no larger than it may be, but an item that is larger goes alone", async () => {
  const { batcher, batches, letGo } = held({ maxRunning: 1, maxSize: 10, sizeOf: (item) => item });
  const results = Promise.all([1, 6, 4, 50, 2].map((item) => batcher.run(item)));
  for (let round = 0; round < 4; round++) {
    await turn();
    letGo();
  }
  await results;
  expect(batches).toEqual([[1], [6, 4], [50], [2]]);
});

test.each([
  [true, ["1", "2", "failed", "4"]],
  [false, ["1", "failed", "failed", "failed"]],
])("when an item is to blame (%s), only that one fails", async (isItemFault, expected) => {
  const batcher = new Batcher<number, string>({
    maxRunning: 1,
    isItemFault: () => isItemFault,
    async many(items) {
      await turn();
      if (items.includes(3)) throw new Error("three");
      return items.map(String);
    },
  });
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map((item) => batcher.run(item)));
  expect(
    outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : "failed")),
  ).toEqual(expected);
});

test("a single item goes the faster way where there is one", async () => {
  const { batcher, batches } = held({ one: async (item) => `one ${item}` });
  expect(await batcher.run(7)).toBe("one 7");
  expect(batches).toEqual([]);
});
