import { describe, expect, test, vi } from "vitest";
import { type AnyEvent, ExecutionError, type NodeFunction, type State, StateGraph } from "waymark";
import {
  cycle,
  gate,
  linear,
  mark,
  RecordingStore,
  rejection,
  start,
  type Trail,
  typesOf,
} from "../graphs.js";
import { configError } from "../matchers.js";

type Stream = AsyncGenerator<AnyEvent, State<Trail>, undefined>;

/** All events of a stream, and what it returned. */
async function readAll(stream: Stream): Promise<{ events: AnyEvent[]; final: State<Trail> }> {
  const events: AnyEvent[] = [];
  for (;;) {
    const { value, done } = await stream.next();
    if (done) return { events, final: value };
    events.push(value);
  }
}

/** Lets everything happen that can. */
const settle = () => new Promise(setImmediate);

describe("a stream", () => {
  test("yields the events of a run in order, and returns the result", async () => {
    const store = new RecordingStore();
    const graph = linear(["a", "b"], { checkpoint: { store, interval: 1 } });
    const heard: AnyEvent[] = [];
    graph.on("*", (event) => heard.push(event));
    const { events, final } = await readAll(graph.stream(start("r")));
    expect(events).toEqual(heard);
    expect(typesOf(events)).toEqual([
      "graph.start",
      "checkpoint.save",
      "node.start",
      "node.complete",
      "checkpoint.save",
      "edge.evaluate",
      "edge.transition",
      "node.start",
      "node.complete",
      "checkpoint.save",
      "checkpoint.delete",
      "graph.complete",
    ]);
    expect(final).toMatchObject({ status: "completed", step: 2, runId: "r" });
  });

  test("starts nothing before it is read", async () => {
    const ran = vi.fn();
    const graph = linear(["a"], {}, { a: (state) => ran(state) ?? state });
    const stream = graph.stream(start());
    await settle();
    expect(ran).not.toHaveBeenCalled();
    await readAll(stream);
    expect(ran).toHaveBeenCalledTimes(1);
  });

  test("that is closed before it is read runs nothing", async () => {
    const ran = vi.fn();
    const stream = linear(["a"], {}, { a: (state) => ran(state) ?? state }).stream(start());
    await stream.return(undefined as never);
    expect(await stream.next()).toEqual({ value: undefined, done: true });
    expect(ran).not.toHaveBeenCalled();
  });

  test("yields only the events of its own run", async () => {
    const graph = linear(["a", "b"]);
    const [one, two] = await Promise.all([
      readAll(graph.stream(start("one"))),
      readAll(graph.stream(start("two"))),
    ]);
    for (const [runId, { events, final }] of [["one", one] as const, ["two", two] as const]) {
      expect(new Set(events.map((event) => event.runId))).toEqual(new Set([runId]));
      expect(typesOf(events).at(-1)).toBe("graph.complete");
      expect(final.runId).toBe(runId);
    }
  });

  test("follows a resumed run, with its input", async () => {
    const store = new RecordingStore();
    const ask: NodeFunction<Trail> = async (_state, context) => ({
      trail: [String(await context.pause("ok", { reason: "review", ask: "?" }))],
    });
    const graph = linear(["a", "b"], { checkpoint: { store, interval: 1 } }, { a: ask });
    const first = await readAll(graph.stream(start("r")));
    expect([first.final.status, first.events.at(-1)?.type]).toEqual(["paused", "graph.pause"]);
    const second = await readAll(graph.stream("r", { input: "yes" }));
    expect(second.final.data.trail).toEqual(["yes", "b"]);
    expect(typesOf(second.events).slice(0, 4)).toEqual([
      "checkpoint.load",
      "checkpoint.save",
      "graph.start",
      "checkpoint.resume",
    ]);
  });

  test("yields the events before an error, and then throws it", async () => {
    const boom = new Error("boom");
    const graph = linear(["a", "b"], {}, { b: () => Promise.reject(boom) });
    const types: string[] = [];
    const reading = (async () => {
      for await (const { type } of graph.stream(start())) types.push(type);
    })();
    expect((await rejection(reading, ExecutionError)).cause).toBe(boom);
    expect(types.at(-1)).toBe("graph.fail");
  });

  test("throws what a resume throws for an unknown run", async () => {
    const store = new RecordingStore();
    const graph = linear(["a"], { checkpoint: { store, interval: 1 } });
    await expect(graph.stream("gone").next()).rejects.toMatchObject({
      code: "CHECKPOINT_NOT_FOUND",
    });
  });

  test("refuses invalid options at once", () => {
    const graph = linear(["a"]);
    const refused = (run: unknown, options: unknown, option: string) =>
      expect(() => graph.stream(run as never, options as never)).toThrow(
        configError(option) as Error,
      );
    refused(start(), { input: 1 }, "options.input");
    refused(start(), { step: 1 }, "options.step");
    refused("r", { speed: 1 }, "options.speed");
    refused(7, {}, "runId");
    expect(() => new StateGraph<Trail>().stream(start())).toThrow("the graph has no nodes");
  });
});

describe("back-pressure", () => {
  test("a run waits for a slow reader, and continues when it reads", async () => {
    const rounds = 1000;
    const graph = cycle(rounds, { maxIterations: 2000 });
    let ran = 0;
    graph.on("node.start", () => ran++);
    const stream = graph.stream(start());
    await stream.next();
    for (let turn = 0; turn < 20; turn++) await settle();
    const ahead = ran;
    expect(ahead).toBeGreaterThan(0);
    expect(ahead).toBeLessThan(40);
    for (let turn = 0; turn < 20; turn++) await settle();
    expect(ran).toBe(ahead);
    for (let event = 0; event < 200; event++) await stream.next();
    await settle();
    expect(ran).toBeGreaterThan(ahead);
    expect(ran).toBeLessThan(rounds);
    expect((await readAll(stream)).final.step).toBe(rounds + 1);
  });

  test("a run that waits for its reader can be cancelled", async () => {
    const graph = cycle(Number.POSITIVE_INFINITY, { maxIterations: Number.POSITIVE_INFINITY });
    const controller = new AbortController();
    const failed = vi.fn();
    graph.on("graph.fail", ({ data }) => failed(data.code));
    const stream = graph.stream(start(), controller);
    await stream.next();
    for (let turn = 0; turn < 20; turn++) await settle();
    controller.abort();
    await settle();
    expect(failed).toHaveBeenCalledWith("ABORTED");
    expect((await rejection(readAll(stream), ExecutionError)).code).toBe("ABORTED");
  });

  test("a run that waits for its reader can be drained", async () => {
    const store = new RecordingStore();
    const checkpoint = { store, interval: 1 };
    const graph = cycle(500, { maxIterations: 1000, checkpoint });
    const stream = graph.stream(start("r"));
    await stream.next();
    for (let turn = 0; turn < 20; turn++) await settle();
    await graph.drain();
    expect((await rejection(readAll(stream), ExecutionError)).code).toBe("ABORTED");
    expect((await graph.resume("r")).step).toBe(501);
  });
});

describe("a reader that stops", () => {
  test("cancels the run, which is saved and can be resumed", async () => {
    const store = new RecordingStore();
    const graph = cycle(10, { checkpoint: { store, interval: 1 } });
    for await (const { type } of graph.stream(start("r"))) {
      if (type === "edge.transition") break;
    }
    const left = await store.load<Trail>("r");
    expect(left.status).toBe("in_progress");
    expect(left.step).toBeLessThan(10);
    const saves = store.saved.length;
    await settle();
    expect(store.saved).toHaveLength(saves);
    expect((await graph.resume("r")).step).toBe(11);
  });

  test("waits until the running node has stopped, whose signal is aborted", async () => {
    const stopped = vi.fn();
    const a: NodeFunction<Trail> = (_state, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", async () => {
          await settle();
          stopped(signal.reason.name);
          reject(signal.reason);
        });
      });
    const graph = linear(["a"], {}, { a });
    for await (const { type } of graph.stream(start())) if (type === "node.start") break;
    expect(stopped).toHaveBeenCalledWith("AbortError");
  });

  test("before the next event cancels at once", async () => {
    const stopped = gate();
    const a: NodeFunction<Trail> = (_state, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          stopped.open();
          reject(signal.reason);
        });
      });
    const stream = linear(["a"], {}, { a }).stream(start());
    await stream.next();
    await stream.next();
    const pending = stream.next();
    const left = stream.return(undefined as never);
    await stopped.opened;
    await Promise.all([pending, left]);
    expect(await stream.next()).toEqual({ value: undefined, done: true });
  });

  test("with its own error gets that error", async () => {
    const graph = cycle(10);
    const own = new Error("mine");
    const reading = (async () => {
      for await (const { type } of graph.stream(start())) if (type === "node.start") throw own;
    })();
    await expect(reading).rejects.toBe(own);
    const endless = { maxIterations: Number.POSITIVE_INFINITY };
    const stream = cycle(Number.POSITIVE_INFINITY, endless).stream(start());
    await stream.next();
    await expect(stream.throw(own)).rejects.toBe(own);
  });

  test("at the last event loses nothing", async () => {
    const store = new RecordingStore();
    const graph = linear(["a"], { checkpoint: { store, interval: 1, preserve: true } });
    for await (const { type } of graph.stream(start("r"))) if (type === "graph.complete") break;
    expect((await store.load("r")).status).toBe("completed");
  });
});

test("a signal aborted before the first event ends the run before its first node", async () => {
  const graph = linear(["a"], {}, { a: mark });
  const stream = graph.stream(start(), { signal: AbortSignal.abort() });
  expect((await rejection(readAll(stream), ExecutionError)).code).toBe("ABORTED");
});
