import { describe, expect, test, vi } from "vitest";
import { type AnyEvent, ExecutionError, State } from "waymark";
import {
  cycle,
  linear,
  listen,
  mark,
  RecordingStore,
  rejection,
  start,
  type Trail,
  typesOf,
} from "../graphs.js";

const varying = ["checkpointId", "durationMs"];

/** `type` and what is special to it, but for ids and times. */
function told(events: readonly AnyEvent[]): unknown[] {
  return events
    .filter(({ type }) => !type.startsWith("state."))
    .map(({ type, data }) => {
      const fields = Object.entries(data).filter(([name]) => !varying.includes(name));
      return [type, Object.fromEntries(fields)];
    });
}

const aToB = { from: "a", to: "b" };

describe("the order of events", () => {
  test("of a run that saves nothing", async () => {
    const graph = linear(["a", "b"], { name: "g" });
    const events = listen(graph);
    const { runId } = await graph.execute(start());
    expect(told(events)).toEqual([
      ["graph.start", { entryPoint: "a", step: 0, resumed: false }],
      ["node.start", { node: "a", step: 0 }],
      ["node.complete", { node: "a", step: 1 }],
      ["edge.evaluate", { ...aToB, result: true }],
      ["edge.transition", aToB],
      ["node.start", { node: "b", step: 1 }],
      ["node.complete", { node: "b", step: 2 }],
      ["graph.complete", { exitPoint: "b", step: 2 }],
    ]);
    for (const event of events) {
      expect(event.runId).toBe(runId);
      expect(event.source).toBe(event.type.startsWith("state.") ? "state" : "g");
      expect(new Date(event.timestamp).toISOString()).toBe(event.timestamp);
    }
  });

  test("of a run that saves and cleans up", async () => {
    const graph = linear(["a", "b"], { checkpoint: { store: new RecordingStore(), interval: 1 } });
    const events = listen(graph);
    await graph.execute(start());
    expect(told(events)).toEqual([
      ["graph.start", { entryPoint: "a", step: 0, resumed: false }],
      ["checkpoint.save", { node: "", step: 0, sequence: 1, reason: "start" }],
      ["node.start", { node: "a", step: 0 }],
      ["node.complete", { node: "a", step: 1 }],
      ["checkpoint.save", { node: "a", step: 1, sequence: 2, reason: "interval" }],
      ["edge.evaluate", { ...aToB, result: true }],
      ["edge.transition", aToB],
      ["node.start", { node: "b", step: 1 }],
      ["node.complete", { node: "b", step: 2 }],
      ["checkpoint.save", { node: "b", step: 2, sequence: 3, reason: "complete" }],
      ["checkpoint.delete", { node: "b", step: 2 }],
      ["graph.complete", { exitPoint: "b", step: 2 }],
    ]);
  });

  test("of a failure and the resume after it", async () => {
    const cause = new Error("boom");
    let broken = true;
    const b: typeof mark = (state, ctx) => {
      if (broken) throw cause;
      return mark(state, ctx);
    };
    const checkpoint = { store: new RecordingStore(), interval: 1, preserve: true };
    const graph = linear(["a", "b"], { checkpoint }, { b });
    const events = listen(graph);
    await rejection(graph.execute(start("r")), ExecutionError);
    const error = 'node "b" failed: boom';
    expect(told(events).slice(7)).toEqual([
      ["node.start", { node: "b", step: 1 }],
      ["node.complete", { node: "b", step: 1, error, cause }],
      ["checkpoint.save", { node: "a", step: 1, sequence: 3, reason: "failure" }],
      ["graph.fail", { node: "b", step: 1, code: "NODE_FAILED", error, cause }],
    ]);
    events.length = 0;
    broken = false;
    await graph.resume("r");
    expect(told(events)).toEqual([
      ["checkpoint.load", { node: "a", step: 1 }],
      ["checkpoint.save", { node: "a", step: 1, sequence: 4, reason: "resume" }],
      ["graph.start", { entryPoint: "a", step: 1, resumed: true }],
      ["edge.evaluate", { ...aToB, result: true }],
      ["edge.transition", aToB],
      ["checkpoint.resume", { node: "a", step: 1, resumeNode: "b" }],
      ["node.start", { node: "b", step: 1 }],
      ["node.complete", { node: "b", step: 2 }],
      ["checkpoint.save", { node: "b", step: 2, sequence: 5, reason: "complete" }],
      ["graph.complete", { exitPoint: "b", step: 2 }],
    ]);
  });

  test("of a resume at an exit point has only the load", async () => {
    const checkpoint = { store: new RecordingStore(), interval: 1, preserve: true };
    const graph = linear(["a"], { checkpoint });
    const { runId } = await graph.execute(start());
    const events = listen(graph);
    await graph.resume(runId);
    expect(typesOf(events)).toEqual(["checkpoint.load"]);
  });

  test("of evaluated edges includes their names", async () => {
    const graph = cycle(1);
    const events = listen(graph);
    await graph.execute(start());
    expect(told(events).slice(3, 6)).toEqual([
      ["edge.evaluate", { from: "tick", to: "tick", name: "again", result: false }],
      ["edge.evaluate", { from: "tick", to: "done", result: true }],
      ["edge.transition", { from: "tick", to: "done" }],
    ]);
  });
});

test("checkpoint.save follows the acknowledged save, with its id, size and time", async () => {
  const store = new RecordingStore();
  let time = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => time);
  const graph = linear(["a"], { checkpoint: { store, interval: 1, preserve: true } });
  const events: AnyEvent[] = [];
  graph.on("checkpoint.save", (event) => events.push(event));
  store.beforeSave = () => {
    expect(events).toHaveLength(store.saved.length);
    time += 25;
  };
  await graph.execute(start());
  clock.mockRestore();
  expect(events.map(({ data }) => data)).toMatchObject(
    store.saved.map(({ checkpointId }) => ({ checkpointId, durationMs: 25 })),
  );
  expect(events[0]?.data).not.toHaveProperty("bytes");
});

test("checkpoint.save reports its size if the store does", async () => {
  class Sized extends RecordingStore {
    override async save<D extends object>(state: State<D>): Promise<State<D>> {
      const { checkpointId, sequence } = await super.save(state);
      return state.savedAs({ checkpointId, sequence, bytes: 42 });
    }
  }
  const graph = linear(["a"], { checkpoint: { store: new Sized(), interval: 1, preserve: true } });
  const events = listen(graph);
  const final = await graph.execute(start());
  const saves = events.filter(({ type }) => type === "checkpoint.save");
  expect(saves.map(({ data }) => data)).toMatchObject([{ bytes: 42 }, { bytes: 42 }]);
  expect(final.bytes).toBe(42);
});

test("a node emits custom events of its run", async () => {
  const graph = linear(
    ["a"],
    { name: "g" },
    {
      a: (state, ctx) => {
        ctx.emit("decision" as never, { why: "because" } as never);
        return state;
      },
    },
  );
  const events = listen(graph);
  await graph.execute(start("r"));
  expect(events[2]).toMatchObject({
    type: "decision",
    source: "g",
    runId: "r",
    data: { why: "because" },
  });
});

test("the State's own observer receives changes by nodes, until the run ends", async () => {
  const own: string[] = [];
  const initial = State.create<Trail>({ trail: [] }, { observer: ({ type }) => own.push(type) });
  const graph = linear(["a"], {}, { a: (state) => state.set("trail", ["x"]) });
  const events = listen(graph);
  const final = await graph.execute(initial);
  expect(own).toEqual(["state.create", "state.set"]);
  const before = events.length;
  final.set("trail", []);
  expect(own).toHaveLength(3);
  expect(events).toHaveLength(before);
});
