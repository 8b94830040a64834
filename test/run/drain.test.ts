import { expect, test, vi } from "vitest";
import { ExecutionError, type NodeFunction, StateGraph } from "waymark";
import { useFakeClock } from "waymark/testing";
import { gate, linear, mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";

/** a → b → c, of which `b` waits until it is let go. */
function graphOf(interval = 1) {
  const store = new RecordingStore();
  const [entered, go] = [gate(), gate()];
  const ran: string[] = [];
  const tell: NodeFunction<Trail> = async (state, context) => {
    ran.push(context.node);
    if (context.node === "b") {
      entered.open();
      await go.opened;
    }
    return mark(state, context);
  };
  const checkpoint = { store, interval };
  const graph = linear(["a", "b", "c"], { checkpoint }, { a: tell, b: tell, c: tell });
  return { graph, store, entered, go, ran };
}

test.each([1, 5])(
  "the running node finishes and is saved, and the next does not start, interval %i",
  async (interval) => {
    const { graph, store, entered, go, ran } = graphOf(interval);
    const ended = rejection(graph.execute(start("r")), ExecutionError);
    await entered.opened;
    const drained = vi.fn();
    const draining = graph.drain().then(drained);
    await new Promise(setImmediate);
    expect(drained).not.toHaveBeenCalled();
    go.open();
    const error = await ended;
    await draining;
    expect(error).toMatchObject({ code: "ABORTED", nodeName: "c", cause: "the graph drains" });
    expect(ran).toEqual(["a", "b"]);
    expect(await store.load("r")).toMatchObject({ status: "in_progress", checkpointNode: "b" });
    expect((await graph.resume("r")).data.trail).toEqual(["a", "b", "c"]);
    expect(ran).toEqual(["a", "b", "c"]);
  },
);

test("drain stops all runs of the graph, and resolves when the last has stopped", async () => {
  const { graph, store, entered, go } = graphOf();
  const runs = ["r", "s", "t"].map((runId) =>
    rejection(graph.execute(start(runId)), ExecutionError),
  );
  await entered.opened;
  const draining = graph.drain();
  go.open();
  await draining;
  expect((await store.runs({ status: "in_progress" })).length).toBe(3);
  for (const { code } of await Promise.all(runs)) expect(code).toBe("ABORTED");
});

test("a run about to start is drained too, before its first node", async () => {
  const { graph, store, ran } = graphOf();
  const ended = rejection(graph.execute(start("r")), ExecutionError);
  await graph.drain();
  expect((await ended).code).toBe("ABORTED");
  expect([ran, await store.list()]).toEqual([[], ["r"]]);
});

test("a run started after a drain runs normally", async () => {
  const { graph, go } = graphOf();
  await graph.drain();
  go.open();
  expect((await graph.execute(start())).status).toBe("completed");
});

test("a run whose last node is running completes", async () => {
  const { graph, entered, go } = graphOf();
  const only = linear(
    ["b"],
    {},
    {
      b: async (state, context) => {
        entered.open();
        await go.opened;
        return mark(state, context);
      },
    },
  );
  const running = only.execute(start());
  await entered.opened;
  const draining = only.drain();
  go.open();
  await draining;
  expect((await running).status).toBe("completed");
  await graph.drain();
});

test("drain does not wait for a node's next attempt", async () => {
  const clock = useFakeClock();
  const store = new RecordingStore();
  let down = true;
  const graph = new StateGraph<Trail>({ checkpoint: { store, interval: 1 } })
    .addNode(
      "a",
      (state, context) => {
        if (down) throw new Error("down");
        return mark(state, context);
      },
      { retry: { initialInterval: 60_000 } },
    )
    .setEntryPoint("a")
    .setExitPoint("a");
  const ended = rejection(graph.execute(start("r")), ExecutionError);
  await clock.advance(1);
  expect(clock.waiting).toBe(1);
  await graph.drain();
  clock.restore();
  expect([(await ended).code, clock.waiting]).toEqual(["ABORTED", 0]);
  expect(await store.load("r")).toMatchObject({ status: "in_progress", error: undefined });
  down = false;
  expect((await graph.resume("r")).status).toBe("completed");
});

test("a node may stop early at a drain and keeps its work", async () => {
  const store = new RecordingStore();
  const calls: number[] = [];
  const half = gate();
  const node: NodeFunction<Trail> = async (state, context) => {
    for (const page of [1, 2, 3]) {
      await context.once(`page ${page}`, () => calls.push(page));
      if (page === 2) {
        half.open();
        await new Promise(setImmediate);
      }
      context.draining.throwIfAborted();
    }
    return mark(state, context);
  };
  const graph = linear(["a"], { checkpoint: { store, interval: 1 } }, { a: node });
  const ended = rejection(graph.execute(start("r")), ExecutionError);
  await half.opened;
  await graph.drain();
  expect((await ended).code).toBe("ABORTED");
  expect(await store.load("r")).toMatchObject({ status: "in_progress" });
  await graph.resume("r");
  expect(calls).toEqual([1, 2, 3]);
});
