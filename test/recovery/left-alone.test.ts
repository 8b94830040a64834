import { describe, expect, test } from "vitest";
import { MemoryStore, recoverRuns } from "waymark";
import { linear, start } from "../graphs.js";
import { MortalStore } from "../nodes/nodes.js";

/** A graph whose node `b` fails, and the nodes it started. */
function flaky(store: MemoryStore) {
  const runs: string[] = [];
  const config = { checkpoint: { store, interval: 1, preserve: true } };
  const graph = linear(["a", "b", "c"], config, {
    b: () => {
      throw new Error("stop");
    },
  });
  graph.on("node.start", ({ data }) => runs.push(data.node));
  return { graph, runs };
}

describe("a run that waits to be resumed", () => {
  test.each(["fork", "rollback"] as const)("because of a %s is left alone", async (how) => {
    const store = new MemoryStore({ keep: 20 });
    const graph = linear(["a", "b"], { checkpoint: { store, interval: 1, preserve: true } });
    await graph.execute(start("r"));
    const { runId } = await graph[how]("r", 1);
    const [report] = await recoverRuns({ store, graphs: [graph] });
    expect(report).toMatchObject({ runId, outcome: "skipped", attempts: 0 });
    expect(report?.reason).toContain(`its newest checkpoint is a ${how}`);
    expect((await store.load(runId)).reason).toBe(how);
  });

  test("is recovered once it was resumed, even if it crashed in its first node", async () => {
    const store = new MemoryStore({ keep: 20 });
    const { graph } = flaky(store);
    await graph.execute(start("r")).catch(() => {});
    await graph.rollback("r", 0);
    const dying = new MortalStore(store, 1);
    const again = linear(["a", "b", "c"], { checkpoint: { store: dying, interval: 1 } });
    await again.resume("r").catch(() => {});
    expect(await store.load("r")).toMatchObject({ step: 0, reason: "resume" });
    const healthy = linear(["a", "b", "c"], { checkpoint: { store, interval: 1 } });
    const [report] = await recoverRuns({ store, graphs: [healthy] });
    expect(report).toMatchObject({ runId: "r", outcome: "completed" });
  });
});

describe("fallbackToPrevious", () => {
  test("is off by default: no acknowledged node runs again", async () => {
    const store = new MemoryStore({ keep: 20 });
    const { graph, runs } = flaky(store);
    await graph.execute(start("r")).catch(() => {});
    for (let time = 0; time < 2; time++) await recoverRuns({ store, graphs: [graph] });
    expect(runs).toEqual(["a", "b", "b", "b"]);
  });

  test("goes back over a step, not over a progress save", async () => {
    const store = new MemoryStore({ keep: 20 });
    let fails = true;
    const ran: string[] = [];
    const graph = linear(
      ["a", "b", "c"],
      { checkpoint: { store, interval: 1, preserve: true } },
      {
        b: async (state, context) => {
          await context.once("half of b", () => 1);
          return state;
        },
        c: async (state, context) => {
          await context.once("half of c", () => 1);
          if (fails) throw new Error("stop");
          return state;
        },
      },
    );
    graph.on("node.start", ({ data }) => ran.push(data.node));
    await graph.execute(start("r")).catch(() => {});
    const options = { store, graphs: [graph], fallbackToPrevious: true, maxAttempts: 5 };
    await recoverRuns(options);
    expect(ran.splice(0)).toEqual(["a", "b", "c", "c"]);
    fails = false;
    const [report] = await recoverRuns(options);
    expect(report).toMatchObject({ outcome: "completed", fellBack: true });
    expect(ran).toEqual(["b", "c"]);
  });
});

test("a node that failed behind a breakpoint does not stop there again", async () => {
  const store = new MemoryStore();
  let fails = true;
  const config = { breakpoints: { before: ["b"] }, checkpoint: { store, interval: 1 } };
  const graph = linear(["a", "b"], config, {
    b: (state) => {
      if (fails) throw new Error("stop");
      return state;
    },
  });
  expect((await graph.execute(start("r"))).status).toBe("paused");
  await graph.resume("r").catch(() => {});
  fails = false;
  expect((await graph.resume("r")).status).toBe("completed");
});
