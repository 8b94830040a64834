import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type DagTasks,
  dag,
  ExecutionError,
  GraphError,
  type ItemContext,
  MemoryStore,
  map,
  ParallelError,
  State,
} from "waymark";
import { SqliteStore } from "waymark/stores/sqlite";
import type { DagTask } from "../../src/nodes/dag.js";
import { gate, RecordingStore, rejection, thrown } from "../graphs.js";
import { configError } from "../matchers.js";
import { Counts, eventsOf, remembered } from "./nodes.js";

interface Page {
  url: string;
  html?: string;
  links?: readonly string[];
  words?: number;
  report?: string;
}

const tasks = {
  report: {
    dependsOn: ["links", "words"],
    run: ({ data }) => `${data.words} words, ${data.links?.length} links`,
  },
  words: { dependsOn: ["html"], run: async ({ data }) => data.html?.split(" ").length },
  links: { dependsOn: ["html"], run: () => ["/a", "/b"] },
  html: { run: ({ data }) => `the page ${data.url}` },
} satisfies DagTasks<Page>;
const page = (): State<Page> => State.create<Page>({ url: "/" }, { runId: "r" });
const saving = (store: MemoryStore) => ({ checkpoint: { store, interval: 1 } });

describe("a dag", () => {
  test("runs each task after its dependencies, and stores its result under its name", async () => {
    const final = await dag<Page>(tasks).execute(page());
    expect(final.data).toEqual({
      url: "/",
      html: "the page /",
      links: ["/a", "/b"],
      words: 3,
      report: "3 words, 2 links",
    });
  });

  test("is a graph of layers, with one checkpoint each", async () => {
    const store = new RecordingStore();
    const graph = dag<Page>(tasks, { name: "page", ...saving(store) });
    expect(graph.name).toBe("page");
    await graph.execute(page());
    expect(store.saved.map(({ checkpointNode, step }) => `${step} ${checkpointNode}`)).toEqual([
      "0 ",
      "1 layer 1",
      "2 layer 2",
      "3 layer 3",
    ]);
    expect(graph.toMermaid()).toContain('"layer 2"');
  });

  test("runs the tasks of a layer concurrently, up to a limit", async () => {
    let running = 0;
    let most = 0;
    const run = async (): Promise<number> => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      return running--;
    };
    const four = { a: { run }, b: { run }, c: { run }, d: { run } };
    type Four = Record<"a" | "b" | "c" | "d", number>;
    const zero = State.create<Four>({ a: 0, b: 0, c: 0, d: 0 });
    await dag<Four>(four).execute(zero);
    expect(most).toBe(4);
    most = 0;
    await dag<Four>(four, { concurrency: 2 }).execute(zero);
    expect(most).toBe(2);
  });

  test("may depend on a task twice, and on one several layers back", async () => {
    const final = await dag<Record<string, number>>({
      a: { run: () => 1 },
      b: { dependsOn: ["a", "a"], run: ({ data }) => Number(data.a) + 1 },
      c: { dependsOn: ["b", "a"], run: ({ data }) => Number(data.a) + Number(data.b) },
    }).execute(State.create({}));
    expect(final.data).toEqual({ a: 1, b: 2, c: 3 });
    expect(final.step).toBe(3);
  });

  test("may have more layers than the default of maxIterations", async () => {
    const many = Object.fromEntries(
      Array.from({ length: 1500 }, (_, at) => [
        `t${at}`,
        { dependsOn: at === 0 ? [] : [`t${at - 1}`], run: () => at },
      ]),
    );
    expect((await dag<Record<string, number>>(many).execute(State.create({}))).step).toBe(1500);
  });

  test("has a different fingerprint with different tasks in the same layers", () => {
    const layer = (...more: string[]) =>
      dag<Record<string, number>>(
        Object.fromEntries(
          [...Array.from({ length: 50 }, (_, at) => `task${at}`), ...more].map((name) => [
            name,
            { run: () => 1 },
          ]),
        ),
      );
    const [one, other] = [layer("x"), layer("y")];
    expect(one.toMermaid()).toBe(other.toMermaid());
    expect(one.fingerprint).toBe(layer("x").fingerprint);
    expect(one.fingerprint).not.toBe(other.fingerprint);
  });
});

describe("an invalid dag", () => {
  const run = (): number => 1;
  const refused = (wrong: object): GraphError =>
    thrown(() => dag(wrong as DagTasks<Record<string, number>>), GraphError);

  test.each<[string, Record<string, readonly string[]>, string]>([
    ["itself", { a: ["a"] }, "a → a"],
    ["each other", { a: ["b"], b: ["a"] }, "a → b → a"],
    [
      "each other behind others",
      { x: ["a"], a: ["b"], b: ["c"], c: ["a"], y: [] },
      "a → b → c → a",
    ],
  ])("with tasks that wait for %s shows the loop", (_what, graph, loop) => {
    const wrong = Object.fromEntries(
      Object.entries(graph).map(([name, dependsOn]) => [name, { dependsOn, run }]),
    );
    expect(refused(wrong)).toMatchObject({
      code: "GRAPH_CYCLE",
      message: `tasks depend on each other in a cycle: ${loop}`,
    });
  });

  test("with an unknown dependency lists the known tasks", () => {
    expect(refused({ a: { run }, b: { dependsOn: ["c"], run } })).toMatchObject({
      code: "GRAPH_NODE_UNKNOWN",
      message: 'task "b" depends on "c", which is not a task; the tasks are: "a", "b"',
    });
  });

  test("with no tasks is refused", () => {
    expect(refused({})).toMatchObject({ code: "GRAPH_NO_NODES" });
    expect(refused({ a: {} })).toMatchObject({
      code: "GRAPH_NODE_FUNCTION",
      message: 'task "a" must be a function, or have one as run or node; got undefined',
    });
    expect(refused({ a: undefined })).toMatchObject({ code: "GRAPH_NODE_FUNCTION" });
    expect(refused({ a: 5 })).toMatchObject({
      message: 'task "a" must be a function, or have one as run or node; got 5',
    });
  });

  test.each([null, undefined, 5, ["a"]])("with tasks %j is refused", (tasks) => {
    expect(() => dag(tasks as never)).toThrow(configError("tasks", "must be an object; got"));
  });

  test.each([null, 5, []])("with options %j is refused", (options) => {
    const make = () => dag<{ a: number }>({ a: { run: () => 1 } }, options as never);
    expect(make).toThrow(configError("options", "must be an object; got"));
  });

  test.each([null, 5, "ab", {}, [5]])("with a task that depends on %j is refused", (dependsOn) => {
    const make = () => dag({ a: { run }, b: { run }, ab: { dependsOn: dependsOn as never, run } });
    expect(make).toThrow(configError("tasks.ab.dependsOn", "must be an array of task names"));
  });
});

describe("a failing dag", () => {
  test("names the task, whose own error is the innermost cause", async () => {
    const boom = new Error("boom");
    const failure = await rejection(
      dag<Page>({
        ...tasks,
        links: { dependsOn: ["html"], run: () => Promise.reject(boom) },
      }).execute(page()),
      ExecutionError,
    );
    expect(failure.nodeName).toBe("layer 2");
    expect(failure.cause).toBeInstanceOf(ParallelError);
    expect(failure.cause).toMatchObject({ message: 'item 1 ("links") failed: boom', cause: boom });
  });

  test("repeats what failed, and nothing that completed", async () => {
    const store = new MemoryStore();
    const counts = new Counts();
    let online = false;
    const counted = Object.fromEntries(
      Object.entries<DagTask<Page, unknown>>(tasks).map(([name, task]) => [
        name,
        {
          ...task,
          run: (state: State<Page>, context: ItemContext<Page>) => {
            counts.add(name);
            if (name === "links" && !online) throw new Error("offline");
            return task.run(state, context);
          },
        },
      ]),
    ) as DagTasks<Page>;
    await rejection(dag(counted, saving(store)).execute(page()), ExecutionError);
    // Of the layer that failed, what is done is stored, and nothing else.
    expect(Object.values(await remembered(store, "r"))).toEqual([{ words: 3 }]);
    expect((await store.load<Page>("r")).data).toEqual({ url: "/", html: "the page /" });
    online = true;
    const final = await dag(counted, saving(store)).resume("r");
    expect(final.data.report).toBe("3 words, 2 links");
    expect(counts.all).toEqual({ html: 1, words: 1, links: 2, report: 1 });
  });

  test("retries a task by its policy", async () => {
    let attempts = 0;
    const flaky = () => (++attempts < 3 ? Promise.reject(new Error("busy")) : ["/a"]);
    const retry = { maxAttempts: 3, initialInterval: 0 };
    const final = await dag<Page>(
      { ...tasks, links: { dependsOn: ["html"], run: flaky } },
      { retry },
    ).execute(page());
    expect(final.data.links).toEqual(["/a"]);
  });
});

describe("a task", () => {
  const run = (): number => 1;
  type Abc = Record<"a" | "b" | "c", number>;
  const zero = (): State<Abc> => State.create<Abc>({ a: 0, b: 0, c: 0 }, { runId: "r" });

  test("may be a function without dependencies", async () => {
    const tasks = { a: () => 1, b: async () => 2, c: { dependsOn: ["a", "b"] as const, run } };
    expect((await dag<Abc>(tasks).execute(zero())).data).toEqual({ a: 1, b: 2, c: 1 });
  });

  test("may be retried by its own policy, without other tasks", async () => {
    const counts = new Counts();
    const flaky = (name: "a" | "b", fails: number) => () => {
      counts.add(name);
      if (counts.of(name) <= fails) throw new Error("busy");
      return counts.of(name);
    };
    const retry = { maxAttempts: 3, initialInterval: 0 };
    const graph = dag<Abc>({ a: { run: flaky("a", 2), retry }, b: { run: flaky("b", 0) } });
    const events = eventsOf(graph, "worker");
    const final = await graph.execute(zero());
    expect(final.data).toMatchObject({ a: 3, b: 1 });
    const retries = events.filter(({ type }) => type === "worker.retry");
    expect(retries.map(({ data }) => data)).toMatchObject([
      { node: "layer 1", item: "a", attempt: 1, error: "busy" },
      { node: "layer 1", item: "a", attempt: 2, error: "busy" },
    ]);
  });

  test("runs its onces once across its attempts", async () => {
    const counts = new Counts();
    const graph = dag<Abc>({
      a: {
        retry: { maxAttempts: 2, initialInterval: 0 },
        run: async (_state, context) => {
          const value = await context.once("charge", () => {
            counts.add("charge");
            return 7;
          });
          if (context.attempt === 1) throw new Error("later");
          return value;
        },
      },
    });
    expect((await graph.execute(zero())).data.a).toBe(7);
    expect(counts.all).toEqual({ charge: 1 });
  });

  test("fails if it takes too long, and does not delay the next attempt", async () => {
    const graph = dag<Abc>({
      a: {
        timeout: 5,
        retry: { maxAttempts: 2, initialInterval: 0 },
        run: (_state, context) =>
          context.once("slow", () => (context.attempt === 1 ? new Promise(() => {}) : 4)),
      },
    });
    expect((await graph.execute(zero())).data.a).toBe(4);
  });

  test("gives its phase to its layer and its events", async () => {
    const store = new MemoryStore({ keep: 10 });
    const graph = dag<Abc>(
      { a: { run, phase: "read" }, b: { run, phase: "read" }, c: { dependsOn: ["a"], run } },
      { checkpoint: { store, interval: 1, preserve: true } },
    );
    const events = eventsOf(graph, "worker");
    await graph.execute(zero());
    const phases = (await store.history("r")).map(({ node, phase }) => `${node}: ${phase}`);
    expect(phases).toEqual(["layer 2: ", "layer 1: read", ": "]);
    expect(events[0]?.data).toMatchObject({ item: "a", phase: "read" });
  });

  test("has its own idempotency key, by its name", async () => {
    const keys: string[] = [];
    const note = (_state: State<Abc>, { idempotencyKey }: { idempotencyKey: string }) =>
      keys.push(idempotencyKey);
    await dag<Abc>({ a: note, b: { dependsOn: ["a"], run: note } }).execute(zero());
    expect(keys).toEqual(["r:0:layer 1[a]", "r:1:layer 2[b]"]);
  });

  test("is named by its events, with its duration", async () => {
    const graph = dag<Abc>({ a: run, b: { dependsOn: ["a"], run } });
    const events = eventsOf(graph, "worker");
    await graph.execute(zero());
    const ended = events.flatMap((event) => (event.type === "worker.complete" ? [event.data] : []));
    expect(ended.map(({ node, item }) => [node, item])).toEqual([
      ["layer 1", "a"],
      ["layer 2", "b"],
    ]);
    for (const { durationMs } of ended) expect(durationMs).toBeGreaterThanOrEqual(0);
  });

  test.each([
    [{ run, retry: { maxAttempts: 0 } }, "tasks.a.retry.maxAttempts", "an integer ≥ 1"],
    [{ run, timeout: 0 }, "tasks.a.timeout", "a number of milliseconds > 0"],
    [{ run, phase: "" }, "tasks.a.phase", "a non-empty string"],
    [{ run, retries: 3 }, "tasks.a.retries", "is not an option"],
  ])("refuses %j", (task, field, problem) => {
    expect(() => dag({ a: task } as never)).toThrow(configError(field, problem));
  });
});

describe("a task that maps", () => {
  interface Sizes {
    words: readonly string[];
    sizes: readonly number[];
  }
  const words = ["way", "mark", "a"];
  const start = (): State<Sizes> => State.create<Sizes>({ words: [], sizes: [] }, { runId: "r" });

  test("returns the results of its items in order", async () => {
    const final = await dag<Sizes>()({
      words: () => words,
      sizes: {
        dependsOn: ["words"],
        run: map(
          ({ data }) => data.words,
          async (_s, w) => w.length,
        ),
      },
    }).execute(start());
    expect(final.data.sizes).toEqual([3, 4, 1]);
  });

  test.each(["item", "layer", 2] as const)(
    "runs only the missing items after a failure, with saves: %j",
    async (saves) => {
      const store = new MemoryStore();
      const counts = new Counts();
      let online = false;
      const graph = dag<Sizes>(
        {
          words: () => words,
          sizes: {
            dependsOn: ["words"],
            run: map<Sizes, string, number>(
              ({ data }) => data.words,
              (_state, word) => {
                counts.add(word);
                if (word === "a" && !online) throw new Error("offline");
                return word.length;
              },
              { concurrency: 1 },
            ),
          },
        },
        { saves, checkpoint: { store, interval: 1 } },
      );
      await rejection(graph.execute(start()), ExecutionError);
      online = true;
      expect((await graph.resume("r")).data.sizes).toEqual([3, 4, 1]);
      expect(counts.all).toEqual({ way: 1, mark: 1, a: 2 });
    },
  );
});

describe("an eager dag", () => {
  test("starts a task as soon as its dependencies complete", async () => {
    const slow = gate();
    const order: string[] = [];
    const note = (name: string) => () => {
      order.push(name);
      return name;
    };
    type Four = Record<"slow" | "quick" | "next" | "last", string>;
    const final = await dag<Four>(
      {
        slow: { run: async () => slow.opened.then(note("slow")) },
        quick: note("quick"),
        next: {
          dependsOn: ["quick"],
          run: ({ data }) => {
            slow.open();
            return `${note("next")()} after ${data.quick}`;
          },
        },
        last: { dependsOn: ["slow", "next"], run: ({ data }) => `${data.slow}, ${data.next}` },
      },
      { schedule: "eager" },
    ).execute(State.create<Four>({ slow: "", quick: "", next: "", last: "" }));
    expect(order).toEqual(["quick", "next", "slow"]);
    expect(final.data.last).toBe("slow, next after quick");
    expect(final.checkpointNode).toBe("tasks");
  });

  test("does not start tasks that depend on a failed one", async () => {
    const counts = new Counts();
    const graph = dag<Record<string, number>>(
      {
        a: () => Promise.reject(new Error("boom")),
        b: {
          dependsOn: ["a"],
          run: () => {
            counts.add("b");
            return 1;
          },
        },
      },
      { schedule: "eager" },
    );
    await rejection(graph.execute(State.create({})), ExecutionError);
    expect(counts.all).toEqual({});
  });
});

describe("saves", () => {
  const forty = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [
      `t${at}`,
      { run: () => new Promise<number>((resolve) => setImmediate(() => resolve(at))) },
    ]),
  );
  test.each([
    ["layer", 2],
    [10, 6],
    ["item", 42],
  ] as const)("%j makes %i checkpoints of forty consecutive tasks", async (saves, count) => {
    const store = new RecordingStore();
    const graph = dag<Record<string, number>>(forty, { saves, concurrency: 1, ...saving(store) });
    await graph.execute(State.create({}));
    expect(store.saved.length).toBe(count);
  });

  test.each([0, -1, 1.5, "node", null])("may not be %j", (saves) => {
    const make = () => dag<{ a: number }>({ a: () => 1 }, { saves: saves as never });
    expect(make).toThrow(configError("options.saves", 'must be "item", "layer" or an integer ≥ 1'));
  });

  test("200 tasks of 350 bytes write less than three times their size", async () => {
    const folder = await mkdtemp(join(tmpdir(), "dag-"));
    const store = new SqliteStore({ path: join(folder, "runs.db") });
    const tasks = Object.fromEntries(
      Array.from({ length: 200 }, (_, at) => [
        `task${at}`,
        { dependsOn: at < 20 ? [] : [`task${at - 20}`], run: () => String(at).padEnd(350, "x") },
      ]),
    );
    const graph = dag<Record<string, string>>(tasks, {
      checkpoint: { store, interval: 1, preserve: true, keep: 1000 },
    });
    let written = 0;
    graph.on("checkpoint.save", ({ data }) => {
      written += data.bytes ?? Number.NaN;
    });
    await graph.execute(State.create({}));
    await store.close();
    await rm(folder, { recursive: true });
    expect(written).toBeLessThan(3 * 200 * 350);
  });
});
