import { describe, expect, test } from "vitest";
import { type NodeFunction, recoverRuns } from "waymark";
import { bare, gate, linear, mark, RecordingStore, start, type Trail } from "../graphs.js";
import { restarted, world } from "./crashes.js";

describe("claims", () => {
  test("leave alone a run of a living process", async () => {
    const store = new RecordingStore();
    const [entered, go] = [gate(), gate()];
    const a: NodeFunction<Trail> = async (state, context) => {
      entered.open();
      await go.opened;
      return mark(state, context);
    };
    const graph = linear(["a"], { checkpoint: { store, interval: 1 } }, { a });
    const running = graph.execute(start("r"));
    await entered.opened;
    expect(await recoverRuns({ store, graphs: [graph] })).toMatchObject([
      { outcome: "skipped", reason: "a live process is working on it" },
    ]);
    go.open();
    expect((await running).status).toBe("completed");
  });

  test("let only one of two concurrent recoveries resume each run", async () => {
    const { begin, graphIn, store, ran } = world("crash");
    await begin();
    const opened = restarted(store);
    const options = { store: opened, graphs: [graphIn(opened)] };
    const both = await Promise.all([recoverRuns(options), recoverRuns(options)]);
    const outcomes = both.flat().map(({ outcome }) => outcome);
    expect(outcomes.sort()).toEqual(["completed", "skipped"]);
    expect(ran).toEqual(["a", "b", "b", "c"]);
  });

  test("are replaced in a store without them by a conflict, which is reported", async () => {
    const { begin, graphIn, store } = world("crash");
    await begin();
    const graphs = [graphIn(bare(store))];
    const options = { store: bare(store), graphs };
    const both = (await Promise.all([recoverRuns(options), recoverRuns(options)])).flat();
    expect(both.map(({ outcome }) => outcome).sort()).toEqual(["completed", "skipped"]);
    const loser = both.find(({ outcome }) => outcome === "skipped");
    expect(loser).toMatchObject({
      reason: "another process has taken it",
      error: { code: "CHECKPOINT_CONFLICT" },
    });
  });

  test("are released, however the run ends", async () => {
    const { begin, graphIn, store } = world("crash", "throw");
    await begin();
    const opened = restarted(store);
    const options = { store: opened, graphs: [graphIn(opened)] };
    expect(await recoverRuns(options)).toMatchObject([{ outcome: "failed" }]);
    expect(await recoverRuns(options)).toMatchObject([{ outcome: "completed" }]);
    expect(await opened.claim?.("r")).toBeDefined();
  });

  test("that fail are reported, and stop a resume before any node", async () => {
    const { begin, graphIn, store } = world("crash");
    await begin();
    const opened = { ...restarted(store), claim: () => Promise.reject(new Error("no locks")) };
    const graph = graphIn(opened);
    expect(await recoverRuns({ store: opened, graphs: [graph] })).toMatchObject([
      { outcome: "skipped", reason: "it can't be claimed" },
    ]);
    await expect(graph.resume("r")).rejects.toThrow("no locks");
  });

  test("are held while the run is active, and released however it ends", async () => {
    const store = new RecordingStore();
    const held: boolean[] = [];
    const graphOf = (behaviour: "work" | "throw" | "pause") =>
      linear(
        ["a"],
        { checkpoint: { store, interval: 1, preserve: true } },
        {
          a: async (state, context) => {
            held.push((await store.claim("r")) === undefined);
            if (behaviour === "throw") throw new Error("boom");
            if (behaviour === "pause") await context.pause("x", { reason: "x" });
            return state;
          },
        },
      );
    for (const behaviour of ["throw", "pause", "work"] as const) {
      const graph = graphOf(behaviour);
      await (held.length === 0 ? graph.execute(start("r")) : graph.resume("r")).catch(() => {});
      const claim = await store.claim("r");
      expect(claim).toBeDefined();
      await claim?.release();
    }
    expect(held).toEqual([true, true, true]);
  });
});
