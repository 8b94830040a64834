import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type AnyEvent, ExecutionError, StateGraph } from "waymark";
import { useClock } from "../../src/clock.js";
import { EventBus } from "../../src/events.js";
import {
  cycle,
  gate,
  linear,
  mark,
  RecordingStore,
  rejection,
  start,
  type Trail,
} from "../graphs.js";

describe("without listeners", () => {
  const runOf = async (
    rounds: number,
    observer?: () => void,
  ): Promise<{ emits: number; clock: number }> => {
    const emit = vi.spyOn(EventBus.prototype, "emit");
    let asked = 0;
    const restore = useClock({ now: () => ++asked, after: () => () => {} });
    const graph = cycle(rounds, { checkpoint: { store: new RecordingStore(), interval: 1 } });
    if (observer !== undefined) graph.on("*", observer);
    await graph.execute(start());
    restore();
    const emits = emit.mock.calls.length;
    emit.mockClear();
    return { emits, clock: asked };
  };

  afterEach(() => {
    vi.restoreAllMocks();
  });

  test("no step creates an event", async () => {
    const short = await runOf(2);
    const long = await runOf(102);
    expect(long.emits).toBe(short.emits);
    // One look at the clock for each node's timestamp, one for the store's of the save and one for when the
    // next node starts; none for events.
    expect(long.clock - short.clock).toBe(300);
    const heard = await runOf(102, () => {});
    expect(heard.emits).toBeGreaterThan(500);
    expect(heard.clock).toBeGreaterThan(500);
  });

  test("removed listeners no longer cost anything", async () => {
    const emit = vi.spyOn(EventBus.prototype, "emit");
    const graph = cycle(50);
    const handler = (): void => {};
    graph.on("node.start", handler).off("node.start", handler);
    await graph.execute(start());
    expect(emit.mock.calls.map(([type]) => type)).toEqual(["graph.start", "graph.complete"]);
  });

  test("a listener for one type causes no other events", async () => {
    const types: string[] = [];
    const graph = cycle(3);
    graph.on("cycle.detected", ({ type }) => types.push(type));
    const emit = vi.spyOn(EventBus.prototype, "emit");
    await graph.execute(start());
    expect(types).toEqual(["cycle.detected", "cycle.detected"]);
    expect(emit.mock.calls.map(([type]) => type)).toEqual([
      "graph.start",
      "cycle.detected",
      "cycle.detected",
      "graph.complete",
    ]);
  });
});

describe("rule 8: an observer", () => {
  beforeEach(() => {
    vi.spyOn(console, "error").mockImplementation(() => {});
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  const never = new Promise<void>(() => {});
  const throws = () => {
    throw new Error("observer");
  };

  test.each<[what: string, observer: (event: AnyEvent) => unknown]>([
    ["throws", throws],
    ["rejects", () => Promise.reject(new Error("observer"))],
    ["never answers", () => never],
    ["returns nonsense", () => ({ data: { trail: ["smuggled"] } })],
  ])("that %s never changes a run", async (_what, observer) => {
    const store = new RecordingStore();
    const graph = cycle(3, { observer, checkpoint: { store, interval: 1, preserve: true } });
    const heard: string[] = [];
    graph.on("*", ({ type }) => heard.push(type));
    const final = await graph.execute(start());
    expect(final.data.trail).toEqual(["tick", "tick", "tick", "done"]);
    expect(store.saved).toHaveLength(5);
    expect(heard.at(-1)).toBe("graph.complete");
  });

  test("that throws during a failure does not hide it", async () => {
    const own = new Error("own");
    const graph = linear(
      ["a"],
      { observer: throws },
      {
        a: () => {
          throw own;
        },
      },
    );
    expect((await rejection(graph.execute(start()), ExecutionError)).cause).toBe(own);
  });

  test("that is slow does not delay the run", async () => {
    const slow = gate();
    let finished = 0;
    const graph = linear(["a", "b"], {
      observer: async () => {
        await slow.opened;
        finished++;
      },
    });
    await graph.execute(start());
    expect(finished).toBe(0);
    slow.open();
    await new Promise((resolve) => setImmediate(resolve));
    expect(finished).toBeGreaterThan(0);
  });

  test("that is added or removed during a run affects no other", async () => {
    const graph = new StateGraph<Trail>()
      .addNode("a", mark)
      .addNode("b", mark)
      .addEdge("a", "b")
      .setEntryPoint("a")
      .setExitPoint("b");
    const late: string[] = [];
    const once = (): void => {
      graph.off("node.start", once);
      graph.on("node.complete", ({ data }) => late.push(data.node));
    };
    const steady: string[] = [];
    graph.on("node.start", once).on("node.start", ({ data }) => steady.push(data.node));
    await graph.execute(start());
    expect(steady).toEqual(["a", "b"]);
    expect(late).toEqual(["a", "b"]);
  });
});
