import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type CheckpointAt,
  END,
  ExecutionError,
  type GraphConfig,
  type NodeFunction,
  State,
  StateGraph,
} from "waymark";
import { SqliteStore } from "waymark/stores/sqlite";
import { type FakeClock, useFakeClock } from "waymark/testing";
import { cycle, linear, mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";

const NOW = Date.UTC(2030, 0, 1);
const at = (ms: number): string => new Date(NOW + ms).toISOString();

let clock: FakeClock;
beforeEach(() => {
  clock = useFakeClock(NOW);
});
afterEach(() => clock.restore());

/** Gives back what a file would. */
class TextStore extends RecordingStore {
  override async load<D extends object>(runId: string, at?: CheckpointAt): Promise<State<D>> {
    return State.fromJSON<D>(JSON.stringify(await super.load<D>(runId, at)));
  }
}

/** A node that takes so many milliseconds. */
const taking =
  (ms: number): NodeFunction<Trail> =>
  async (state, context) => {
    await clock.advance(ms);
    return mark(state, context);
  };

const saving = (store = new RecordingStore(), more: GraphConfig<Trail> = {}) => ({
  ...more,
  checkpoint: { store, interval: 1, preserve: true },
});

describe("the steps of a run", () => {
  test("record of each node when it ran, how long and in which phase", async () => {
    const graph = new StateGraph<Trail>(saving())
      .addNode("plan", taking(30), { phase: "draft" })
      .addNode("write", taking(12))
      .addEdge("plan", "write")
      .setEntryPoint("plan")
      .setExitPoint("write");
    const final = await graph.execute(start());
    expect(final.steps).toEqual([
      {
        node: "plan",
        step: 1,
        phase: "draft",
        startedAt: at(0),
        completedAt: at(30),
        durationMs: 30,
        attempts: 1,
      },
      {
        node: "write",
        step: 2,
        phase: "",
        startedAt: at(30),
        completedAt: at(42),
        durationMs: 12,
        attempts: 1,
      },
    ]);
    expect(final.totals).toEqual({
      plan: { visits: 1, attempts: 1, durationMs: 30 },
      write: { visits: 1, attempts: 1, durationMs: 12 },
    });
  });

  test("do not count the time of a save toward the next node", async () => {
    const store = new RecordingStore();
    store.beforeSave = () => clock.advance(1000);
    const final = await linear(["a", "b"], saving(store), {
      a: taking(5),
      b: taking(7),
    }).execute(start());
    expect(final.steps.map(({ durationMs }) => durationMs)).toEqual([5, 7]);
  });

  test("are each in their own node's checkpoint", async () => {
    const store = new RecordingStore();
    await linear(["a", "b", "c"], saving(store)).execute(start());
    expect(store.saved.map(({ steps }) => steps.map(({ node }) => node).join(""))).toEqual([
      "",
      "a",
      "ab",
      "abc",
    ]);
  });

  test("count a node's attempts", async () => {
    let failures = 2;
    const graph = new StateGraph<Trail>(saving())
      .addNode(
        "b",
        (state, context) => {
          if (failures-- > 0) throw new Error("down");
          return mark(state, context);
        },
        { retry: { maxAttempts: 5, initialInterval: 0 } },
      )
      .addEdge("b", "b", (state) => state.step < 2)
      .addNode("end", mark)
      .addEdge("b", "end")
      .setEntryPoint("b")
      .setExitPoint("end");
    const running = graph.execute(start());
    await clock.advance(10);
    const final = await running;
    expect(final.steps.map(({ node, attempts }) => [node, attempts])).toEqual([
      ["b", 3],
      ["b", 1],
      ["end", 1],
    ]);
    expect(final.totals.b).toMatchObject({ visits: 2, attempts: 4 });
  });

  test("record what each node used, and totals the sum", async () => {
    const graph = cycle(3, saving());
    const spending = new StateGraph<Trail>(saving())
      .addNode("tick", (state, context) => {
        context.ledger.usage({ costUsd: state.step + 1, inputTokens: 10 });
        return mark(state, context);
      })
      .addNode("done", mark)
      .addEdge("tick", "tick", (state) => state.step < 2)
      .addEdge("tick", "done")
      .setEntryPoint("tick")
      .setExitPoint("done");
    const final = await spending.execute(start());
    expect(final.steps.map(({ usage }) => usage?.costUsd)).toEqual([1, 2, undefined]);
    expect(final.totals.tick).toMatchObject({ visits: 2, usage: { costUsd: 3, inputTokens: 20 } });
    expect(final.totals.done).not.toHaveProperty("usage");
    const free = await graph.execute(start());
    expect(free.steps.every((step) => !("usage" in step))).toBe(true);
  });

  test("cover completed nodes only", async () => {
    const store = new TextStore();
    let broken = true;
    const graph = linear(["a", "b"], saving(store), {
      b: (state, context) => {
        if (broken) throw new Error("boom");
        return mark(state, context);
      },
    });
    const error = await rejection(graph.execute(start("r")), ExecutionError);
    expect((error.state as State<Trail>).steps.map(({ node }) => node)).toEqual(["a"]);
    broken = false;
    expect((await graph.resume("r")).steps.map(({ node, step }) => [node, step])).toEqual([
      ["a", 1],
      ["b", 2],
    ]);
  });
});

describe("a long run", () => {
  test.each([
    [undefined, 100],
    [7, 7],
    [150, 150],
  ])("with maxSteps %s keeps the newest %i steps and exact totals", async (most, left) => {
    const store = new TextStore();
    const config = saving(store, most === undefined ? {} : { record: { maxSteps: most } });
    const final = await cycle(179, config).execute(start("r"));
    expect(final.step).toBe(180);
    expect(final.steps).toHaveLength(left);
    expect(final.steps[0]?.step).toBe(181 - left);
    expect(final.steps.at(-1)).toMatchObject({ node: "done", step: 180 });
    expect(final.totals).toMatchObject({
      tick: { visits: 179, attempts: 179 },
      done: { visits: 1, attempts: 1 },
    });
    const loaded = await store.load<Trail>("r");
    expect(loaded.steps).toEqual(final.steps);
    expect(loaded.totals).toEqual(final.totals);
  });

  test("with maxSteps 0 keeps no steps and exact totals", async () => {
    const store = new TextStore();
    const config = saving(store, { record: { maxSteps: 0 } });
    const graph = linear(["a", "b"], config, { a: taking(4) });
    const final = await graph.execute(start("r"));
    expect(final.steps).toEqual([]);
    const totals = {
      a: { visits: 1, attempts: 1, durationMs: 4 },
      b: { visits: 1, attempts: 1, durationMs: 0 },
    };
    expect(final.totals).toEqual(totals);
    expect((await store.load("r")).totals).toEqual(totals);
  });
});

describe("steps and totals", () => {
  /** Run `r`, stopped in `c` after two steps; then it works. */
  async function stopped(maxSteps: number) {
    const store = new TextStore();
    let broken = true;
    const graph = linear(["a", "b", "c", "d"], saving(store, { record: { maxSteps } }), {
      a: taking(1),
      b: taking(2),
      c: async (state, context) => {
        if (broken) throw new Error("boom");
        return taking(3)(state, context);
      },
    });
    await rejection(graph.execute(start("r")), ExecutionError);
    broken = false;
    return { graph, store };
  }
  const nodes = ({ steps }: State<Trail>): string => steps.map(({ node }) => node).join("");
  const durations = ({ totals }: State<Trail>): Record<string, number> =>
    Object.fromEntries(Object.entries(totals).map(([node, { durationMs }]) => [node, durationMs]));

  test.each([
    [100, "abcd"],
    [3, "bcd"],
  ])("survive a resume, with at most %i steps", async (maxSteps, left) => {
    const { graph } = await stopped(maxSteps);
    const final = await graph.resume("r");
    expect(nodes(final)).toBe(left);
    expect(durations(final)).toEqual({ a: 1, b: 2, c: 3, d: 0 });
  });

  test("are copied to a fork, which leaves the original unchanged", async () => {
    const { graph, store } = await stopped(100);
    const fork = await graph.fork("r", 1);
    expect(nodes(fork)).toBe("a");
    const final = await graph.resume(fork.runId);
    expect(nodes(final)).toBe("abcd");
    expect(durations(final)).toEqual({ a: 1, b: 2, c: 3, d: 0 });
    expect(nodes(await store.load<Trail>("r"))).toBe("ab");
  });

  test("are those of the step a run is rolled back to", async () => {
    const { graph } = await stopped(100);
    await graph.resume("r");
    const back = await graph.rollback("r", 1);
    expect([nodes(back), durations(back)]).toEqual(["a", { a: 1 }]);
    expect(nodes(await graph.resume("r"))).toBe("abcd");
  });

  test("start over with a State that runs again under another id", async () => {
    const { graph } = await stopped(100);
    const again = State.create<Trail>({ trail: [] }).merge(await graph.resume("r"));
    expect(nodes(await graph.execute(again))).toBe("abcd");
  });
});

test("only how often each node completed is recorded without checkpointing", async () => {
  const final = await cycle(5).execute(start());
  expect(final.steps).toEqual([]);
  expect(final.visits).toEqual({ tick: 5, done: 1 });
  expect(Object.keys(final.toJSON())).not.toContain("work");
});

test("a step adds only its own record in a store that writes changes", async () => {
  const bytesPerStep = async (maxSteps: number, steps: number): Promise<number> => {
    const folder = mkdtempSync(join(tmpdir(), "waymark-steps-"));
    const store = new SqliteStore({ path: join(folder, "runs.db") });
    const saves: number[] = [];
    const graph = new StateGraph<{ n: number; text: string }>({
      record: { maxSteps },
      checkpoint: { store, interval: 1, preserve: true },
    })
      .addNode("count", ({ data }) => ({ n: data.n + 1 }), { phase: "work" })
      .addEdge("count", "count", ({ data }) => data.n < steps)
      .addEdge("count", END)
      .setEntryPoint("count")
      .on("checkpoint.save", ({ data }) => saves.push(data.bytes ?? Number.NaN));
    await graph.execute(State.create({ n: 0, text: "x".repeat(10_000) }));
    await store.close();
    rmSync(folder, { recursive: true });
    // Now and then a store writes all of it; the median is of what changed.
    return saves.sort((a, b) => a - b)[saves.length >> 1] ?? Number.NaN;
  };
  // Without records, with all of them, and with the newest.
  const [without, all, newest] = [
    await bytesPerStep(0, 60),
    await bytesPerStep(100, 60),
    await bytesPerStep(40, 150),
  ];
  // The record of this step as JSON has about 170 bytes.
  expect(all - without).toBeLessThan(300);
  expect(newest - without).toBeLessThan(300);
  expect(without).toBeGreaterThan(0);
});
