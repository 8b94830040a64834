import { describe, expect, test } from "vitest";
import { type NodeFunction, recoverRuns, type State } from "waymark";
import { linear, mark, RecordingStore, start, type Trail } from "../graphs.js";
import { restarted, settled, world } from "./crashes.js";

describe("attempts", () => {
  test("are counted across restarts, including those that killed the process", async () => {
    const { begin, recover, store } = world("crash", "crash", "throw", "work");
    await begin();
    expect(await recover()).toEqual([]);
    expect((await store.load("r")).toJSON().recovery).toMatchObject({ attempts: 1 });
    expect(await recover()).toMatchObject([{ outcome: "failed", attempts: 2 }]);
    expect(await recover()).toMatchObject([{ outcome: "completed", attempts: 3 }]);
  });

  test("end at the third: the run is given up and not retried", async () => {
    const { begin, recover, store, ran } = world("throw", "throw", "throw", "throw", "work");
    await begin();
    const outcomes: unknown[] = [];
    for (let start = 0; start < 5; start++) {
      const [report] = await recover();
      outcomes.push([report?.outcome, report?.attempts]);
    }
    expect(outcomes).toEqual([
      ["failed", 1],
      ["failed", 2],
      ["gave-up", 3],
      ["gave-up", 3],
      ["gave-up", 3],
    ]);
    expect(ran.filter((name) => name === "b")).toHaveLength(4);
    expect(await store.load("r")).toMatchObject({ status: "failed", error: { message: "boom" } });
  });

  test("that all killed the process mark the run as failed", async () => {
    const { begin, recover, store, ran } = world("crash", "crash", "crash", "crash", "work");
    await begin();
    for (let start = 0; start < 3; start++) expect(await recover()).toEqual([]);
    expect(await recover()).toMatchObject([{ outcome: "gave-up", attempts: 3 }]);
    expect(ran.filter((name) => name === "b")).toHaveLength(4);
    const left = await store.load<Trail>("r");
    expect(left).toMatchObject({ status: "failed", reason: "recovery" });
    expect(left.error).toEqual({
      name: "RecoveryError",
      message: "the run was recovered 3 times and got no further",
      node: "a",
    });
    const before = store.saved.length;
    expect(await recover()).toMatchObject([{ outcome: "gave-up", attempts: 3 }]);
    expect(store.saved).toHaveLength(before);
  });

  test("count from zero after an abandoned run is resumed by hand", async () => {
    const { begin, recover, store, graphIn } = world("throw", "throw", "work");
    await begin();
    expect(await recover({ maxAttempts: 1 })).toMatchObject([{ outcome: "gave-up" }]);
    const final = await graphIn(restarted(store)).resume("r");
    expect(final.status).toBe("completed");
    expect(final.toJSON().recovery).toBeUndefined();
  });

  test("count from zero after progress", async () => {
    const store = new RecordingStore();
    let alive = 0;
    const node: NodeFunction<Trail> = (state, context) =>
      alive-- > 0 ? mark(state, context) : new Promise(() => {});
    const names = Array.from({ length: 12 }, (_, index) => `n${index}`);
    const nodes = Object.fromEntries(names.map((name) => [name, node]));
    const graphIn = (opened: ReturnType<typeof restarted>) =>
      linear(names, { checkpoint: { store: opened, interval: 1, preserve: true } }, nodes);
    graphIn(restarted(store)).execute(start("r"));
    await settled();
    for (let process = 0; process < 5; process++) {
      alive = 2;
      const opened = restarted(store);
      recoverRuns({ store: opened, graphs: [graphIn(opened)] });
      await settled();
      const { step, recovery } = (await store.load<Trail>("r")).toJSON();
      expect([step, recovery]).toEqual([2 * (process + 1), undefined]);
    }
    alive = 99;
    const opened = restarted(store);
    expect(await recoverRuns({ store: opened, graphs: [graphIn(opened)] })).toMatchObject([
      { outcome: "completed", attempts: 1 },
    ]);
  });

  test("count from zero if the node has saved more work, even without completing", async () => {
    const store = new RecordingStore();
    const calls: number[] = [];
    const node: NodeFunction<Trail> = async (state, context) => {
      for (let item = 0; item < 20; item++) {
        const before = calls.length;
        await context.once(`item ${item}`, () => calls.push(item));
        // Each process dies after four more.
        if (calls.length > before && calls.length % 4 === 0) await new Promise(() => {});
      }
      return mark(state, context);
    };
    const graphIn = (opened: ReturnType<typeof restarted>) =>
      linear(["a"], { checkpoint: { store: opened, interval: 1 } }, { a: node });
    graphIn(restarted(store)).execute(start("r"));
    await settled();
    let reports: unknown[] = [];
    for (let process = 0; process < 5; process++) {
      const opened = restarted(store);
      const recovering = recoverRuns({ store: opened, graphs: [graphIn(opened)] });
      reports = await Promise.race([recovering, settled().then(() => [])]);
    }
    expect(calls).toHaveLength(20);
    expect(reports).toMatchObject([{ outcome: "completed", attempts: 1 }]);
  });
});

describe("falling back", () => {
  const back = { fallbackToPrevious: true };

  test("goes back by one checkpoint if the last attempt failed at the same place", async () => {
    const { begin, recover, ran, store } = world("throw", "throw", "work");
    await begin();
    expect(await recover(back)).toMatchObject([
      { outcome: "failed", attempts: 1, fellBack: false },
    ]);
    expect(ran).toEqual(["a", "b", "b"]);
    expect(await recover(back)).toMatchObject([
      { outcome: "completed", attempts: 2, fellBack: true },
    ]);
    expect(ran).toEqual(["a", "b", "b", "a", "b", "c"]);
    expect(store.log).toContain("recovery:@0");
    expect((await store.load<Trail>("r")).data.trail).toEqual(["a", "b", "c"]);
  });

  test("repairs a run whose last checkpoint makes it fail", async () => {
    const store = new RecordingStore();
    let poison = true;
    const a: NodeFunction<Trail> = () => ({ trail: [poison ? "bad" : "good"] });
    const b: NodeFunction<Trail> = (state) => {
      if (state.data.trail[0] === "bad") throw new Error("can't be");
      return state;
    };
    const config = { checkpoint: { store, interval: 1, preserve: true } };
    const graph = linear(["a", "b"], config, { a, b });
    await graph.execute(start("r")).catch(() => {});
    poison = false;
    const options = { store, graphs: [graph], ...back };
    expect(await recoverRuns(options)).toMatchObject([{ outcome: "failed" }]);
    expect(await recoverRuns(options)).toMatchObject([{ outcome: "completed", fellBack: true }]);
  });

  test("counts as an attempt: a run that fails again at the same place is given up", async () => {
    const { begin, recover, ran } = world("throw", "throw", "throw", "throw", "work");
    await begin();
    const reports = [await recover(back), await recover(back), await recover(back)].flat();
    expect(reports.map(({ attempts, fellBack }) => [attempts, fellBack])).toEqual([
      [1, false],
      [2, true],
      [3, true],
    ]);
    expect(reports.at(-1)?.outcome).toBe("gave-up");
    expect(ran).toEqual(["a", "b", "b", "a", "b", "a", "b"]);
  });

  test("is skipped by default, or if there is nothing to fall back to", async () => {
    const off = world("throw", "throw", "work");
    await off.begin();
    await off.recover();
    expect(await off.recover()).toMatchObject([{ outcome: "completed", fellBack: false }]);
    expect(off.ran).toEqual(["a", "b", "b", "b", "c"]);
    const store = new RecordingStore();
    let failures = 2;
    const a: NodeFunction<Trail> = (state) => {
      if (failures-- > 0) throw new Error("boom");
      return state;
    };
    const graph = linear(["a"], { checkpoint: { store, interval: 1 } }, { a });
    await graph.execute(start("r")).catch(() => {});
    await recoverRuns({ store, graphs: [graph], ...back });
    expect(await recoverRuns({ store, graphs: [graph], ...back })).toMatchObject([
      { outcome: "completed", attempts: 2, fellBack: false },
    ]);
  });

  test("does not go back to an answered pause, which would ask again", async () => {
    const store = new RecordingStore();
    let failures = 2;
    const graph = linear(
      ["a", "b", "c"],
      { checkpoint: { store, interval: 1 } },
      {
        a: async (_state, context) => ({
          trail: [String(await context.pause("ok", { reason: "wait", ask: "?" }))],
        }),
        b: (state) => {
          if (failures-- > 0) throw new Error("boom");
          return state;
        },
      },
    );
    await graph.execute(start("r"));
    await graph.resume("r", { input: "yes" }).catch(() => {});
    await recoverRuns({ store, graphs: [graph], ...back });
    const saved: State<Trail>[] = [];
    store.afterSave = (state) => saved.push(state);
    expect(await recoverRuns({ store, graphs: [graph], ...back })).toMatchObject([
      { outcome: "completed", fellBack: true },
    ]);
    expect(saved[0]?.data.trail).toEqual([]);
    expect(saved.at(-1)?.data.trail[0]).toBe("yes");
  });
});
