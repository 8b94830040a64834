import { describe, expect, test, vi } from "vitest";
import {
  afterNodes,
  ConfigError,
  ExecutionError,
  everyMs,
  type NodeFunction,
  onError,
  onMemoryPressure,
  type Trigger,
  when,
  whenConfidenceBelow,
  whenConfidenceCrosses,
} from "waymark";
import { useFakeClock } from "waymark/testing";
import { linear, mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";
import { configError } from "../matchers.js";

/** What a run of a → b → c → d saves with these triggers, as `reason:node@step`. */
async function saves(
  triggers: readonly Trigger[],
  nodes: Readonly<Record<string, NodeFunction<Trail>>> = {},
  interval = 0,
): Promise<string[]> {
  const store = new RecordingStore();
  const config = { checkpoint: { store, interval, preserve: true, triggers } };
  const graph = linear(["a", "b", "c", "d"], config, nodes);
  await graph.execute(start("r")).catch(() => {});
  const history = await graph.history("r");
  expect(history.map(({ reason }) => reason).reverse()).toEqual(
    store.saved.map(({ reason }) => reason),
  );
  return store.log;
}

/** Nodes that say how sure they are. */
function confident(levels: Readonly<Record<string, number>>) {
  const node: NodeFunction<Trail> = (state, context) => {
    const confidence = levels[context.node];
    if (confidence !== undefined) {
      context.ledger.decision({ description: context.node, confidence });
    }
    return mark(state, context);
  };
  return { a: node, b: node, c: node, d: node };
}

describe("triggers save in addition to the interval, with their reason in the history", () => {
  test("afterNodes", async () => {
    expect(await saves([afterNodes("b", "c")])).toEqual([
      "start:@0",
      "node:b@2",
      "node:c@3",
      "complete:d@4",
    ]);
    expect(await saves([afterNodes()])).toEqual(["start:@0", "complete:d@4"]);
  });

  test("when: by a predicate of the State and the previous one", async () => {
    const phase = when(
      (state, { before }) => state.step === 3 && before.step === 2 && before.checkpointNode === "b",
      "third",
    );
    expect(await saves([phase])).toEqual(["start:@0", "third:c@3", "complete:d@4"]);
    const data = when((state) => (state.data as Trail).trail.length === 1, "one");
    expect(await saves([data])).toContain("one:a@1");
  });

  test("onError: only the failure, which can be resumed", async () => {
    const fails = () => Promise.reject(new Error("boom"));
    expect(await saves([onError()], { c: fails })).toEqual(["start:@0", "failure:b@2"]);
    expect(await saves([onError()])).toEqual(["start:@0", "complete:d@4"]);
  });

  test("whenConfidenceBelow: while the confidence is below", async () => {
    const nodes = confident({ a: 0.9, b: 0.4, d: 0.9 });
    expect(await saves([whenConfidenceBelow(0.5)], nodes)).toEqual([
      "start:@0",
      "confidence:b@2",
      "confidence:c@3",
      "complete:d@4",
    ]);
    expect(await saves([whenConfidenceBelow(0.5)])).toEqual(["start:@0", "complete:d@4"]);
  });

  test("whenConfidenceCrosses: each time the confidence crosses the threshold", async () => {
    const nodes = confident({ a: 0.9, b: 0.4, c: 0.8 });
    expect(await saves([whenConfidenceCrosses(0.5)], nodes)).toEqual([
      "start:@0",
      "confidence:b@2",
      "confidence:c@3",
      "complete:d@4",
    ]);
  });

  test("everyMs: when the last save was that long ago", async () => {
    const clock = useFakeClock();
    const slow =
      (ms: number): NodeFunction<Trail> =>
      async (state, context) => {
        await clock.advance(ms);
        return mark(state, context);
      };
    const nodes = { a: slow(40), b: slow(60), c: slow(99) };
    const log = await saves([everyMs(100)], nodes);
    clock.restore();
    expect(log).toEqual(["start:@0", "time:b@2", "complete:d@4"]);
  });

  test("everyMs(0): after each node", async () => {
    expect(await saves([everyMs(0)])).toHaveLength(5);
  });

  test("onMemoryPressure: while the heap is large", async () => {
    const usage = vi.spyOn(process, "memoryUsage");
    const heaps = [50, 150, 100];
    usage.mockImplementation(
      () => ({ heapUsed: (heaps.shift() ?? 0) * 1024 * 1024 }) as NodeJS.MemoryUsage,
    );
    expect(await saves([onMemoryPressure(100)])).toEqual([
      "start:@0",
      "memory:b@2",
      "complete:d@4",
    ]);
  });

  test("several triggers: the first due names the reason", async () => {
    const triggers = [afterNodes("c"), when((state) => state.step > 1, "late")];
    expect(await saves(triggers)).toEqual(["start:@0", "late:b@2", "node:c@3", "complete:d@4"]);
  });

  test("a trigger at the interval: one save, with the trigger's reason", async () => {
    expect(await saves([afterNodes("b")], {}, 1)).toEqual([
      "start:@0",
      "interval:a@1",
      "node:b@2",
      "interval:c@3",
      "complete:d@4",
    ]);
  });
});

test("a resume continues after a trigger's save", async () => {
  const store = new RecordingStore();
  const ran: string[] = [];
  const node: NodeFunction<Trail> = (state, context) => {
    ran.push(context.node);
    return context.node === "c" && ran.length === 3 ? new Promise(() => {}) : mark(state, context);
  };
  const config = { checkpoint: { store, triggers: [afterNodes("b")] } };
  const graph = linear(["a", "b", "c"], config, { a: node, b: node, c: node });
  graph.execute(start("r"));
  await vi.waitFor(() => expect(ran).toEqual(["a", "b", "c"]));
  await store.forgetClaims();
  expect((await graph.resume("r")).data.trail).toEqual(["a", "b", "c"]);
  expect(ran).toEqual(["a", "b", "c", "c"]);
});

test.each<[what: string, trigger: Trigger, message: RegExp, cause: unknown]>([
  [
    "throws",
    when(() => {
      throw new TypeError("bug");
    }, "mine"),
    /the trigger "mine" failed: bug/,
    new TypeError("bug"),
  ],
  [
    "is asynchronous",
    when((async () => true) as never, "mine"),
    /the trigger "mine" must return true or false; got a Promise/,
    undefined,
  ],
])(
  "a trigger that %s fails the run after its node, whose result is kept",
  async (_, trigger, message, cause) => {
    const store = new RecordingStore();
    const triggers = [trigger];
    const graph = linear(["a", "b"], { checkpoint: { store, interval: 1, triggers } });
    const error = await rejection(graph.execute(start("r")), ExecutionError);
    expect(error).toMatchObject({ code: "PREDICATE_FAILED", nodeName: "a" });
    expect(error.cause).toEqual(cause);
    expect(error.message).toMatch(message);
    expect(await store.load("r")).toMatchObject({ status: "failed", checkpointNode: "a", step: 1 });
    const mended = linear(["a", "b"], { checkpoint: { store, interval: 1 } });
    expect((await mended.resume("r")).data.trail).toEqual(["a", "b"]);
  },
);

describe("an invalid trigger", () => {
  test.each<[make: () => unknown, option: string]>([
    [() => when("x" as never, "r"), "predicate"],
    [() => when(() => true, ""), "reason"],
    [() => afterNodes(7 as never), "node"],
    [() => everyMs(-1), "ms"],
    [() => everyMs(Number.NaN), "ms"],
    [() => onMemoryPressure(0), "megabytes"],
    [() => whenConfidenceBelow(2), "threshold"],
    [() => whenConfidenceCrosses(-0.1), "threshold"],
    [
      () => linear(["a"], { checkpoint: { triggers: "all" as never } }),
      "config.checkpoint.triggers",
    ],
    [
      () => linear(["a"], { checkpoint: { triggers: [afterNodes as never] } }),
      "config.checkpoint.triggers[0]",
    ],
    [
      () => linear(["a"], { checkpoint: { triggers: [null as never] } }),
      "config.checkpoint.triggers[0]",
    ],
    [
      () => linear(["a"], { checkpoint: { triggers: [{ reason: "why" } as never] } }),
      "config.checkpoint.triggers[0]",
    ],
    [
      () => linear(["a"], { checkpoint: { triggers: [onError(), { due: () => true } as never] } }),
      "config.checkpoint.triggers[1]",
    ],
  ])("is refused: %s", (make, option) => {
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(configError(option) as Error);
  });
});
