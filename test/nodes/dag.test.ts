import { describe, expect, test } from "vitest";
import {
  CheckpointSaveError,
  type DagTasks,
  dag,
  ExecutionError,
  GraphError,
  MemoryStore,
  ParallelError,
  State,
} from "waymark";
import { RecordingStore, rejection, thrown } from "../graphs.js";
import { configError } from "../matchers.js";
import { Counts, finishedItems, MortalStore } from "./nodes.js";

interface Page {
  url: string;
  html?: string;
  links?: readonly string[];
  words?: number;
  report?: string;
}

const tasks: DagTasks<Page> = {
  report: {
    dependsOn: ["links", "words"],
    run: ({ data }) => `${data.words} words, ${data.links?.length} links`,
  },
  words: { dependsOn: ["html"], run: async ({ data }) => data.html?.split(" ").length },
  links: { dependsOn: ["html"], run: () => ["/a", "/b"] },
  html: { run: ({ data }) => `the page ${data.url}` },
};
const page = (): State<Page> => State.create<Page>({ url: "/" }, { runId: "r" });
const saving = (store: MemoryStore) => ({ checkpoint: { store, interval: 1 } });

describe("a dag", () => {
  test("runs each task after those it depends on, and puts its result under its name", async () => {
    const final = await dag(tasks).execute(page());
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
    const graph = dag(tasks, { name: "page", ...saving(store) });
    expect(graph.name).toBe("page");
    await graph.execute(page());
    const layers = store.saved.filter(({ reason }) => reason !== "once");
    expect(layers.map(({ checkpointNode, step }) => `${step} ${checkpointNode}`)).toEqual([
      "0 ",
      "1 1: html",
      "2 2: words, links",
      "3 3: report",
    ]);
    expect(graph.toMermaid()).toContain('"2: words, links"');
  });

  test("runs the tasks of a layer at once, so many at a time", async () => {
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

  test("may depend on the same task twice, and on one of a layer far before", async () => {
    const final = await dag<Record<string, number>>({
      a: { run: () => 1 },
      b: { dependsOn: ["a", "a"], run: ({ data }) => Number(data.a) + 1 },
      c: { dependsOn: ["b", "a"], run: ({ data }) => Number(data.a) + Number(data.b) },
    }).execute(State.create({}));
    expect(final.data).toEqual({ a: 1, b: 2, c: 3 });
    expect(final.step).toBe(3);
  });

  test("has more layers than a graph has iterations by default", async () => {
    const many = Object.fromEntries(
      Array.from({ length: 1500 }, (_, at) => [
        `t${at}`,
        { dependsOn: at === 0 ? [] : [`t${at - 1}`], run: () => at },
      ]),
    );
    expect((await dag<Record<string, number>>(many).execute(State.create({}))).step).toBe(1500);
  });

  test("names a layer of many tasks shortly, and another one otherwise", () => {
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
    expect(one.toMermaid()).toMatch(/"1: task0, task1, [^"]{1,60}~[0-9a-f]{16}"/);
    expect(one.fingerprint).toBe(layer("x").fingerprint);
    expect(one.fingerprint).not.toBe(other.fingerprint);
  });
});

describe("a dag that can't be", () => {
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
  ])("because tasks wait for %s shows the loop", (_what, graph, loop) => {
    const wrong = Object.fromEntries(
      Object.entries(graph).map(([name, dependsOn]) => [name, { dependsOn, run }]),
    );
    expect(refused(wrong)).toMatchObject({
      code: "GRAPH_CYCLE",
      message: `tasks wait for each other: ${loop}`,
    });
  });

  test("because a task depends on what is none says which there are", () => {
    expect(refused({ a: { run }, b: { dependsOn: ["c"], run } })).toMatchObject({
      code: "GRAPH_NODE_UNKNOWN",
      message: 'task "b" depends on "c", which is no task; the tasks are: "a", "b"',
    });
  });

  test("because there is nothing to run", () => {
    expect(refused({})).toMatchObject({ code: "GRAPH_NO_NODES" });
    expect(refused({ a: {} })).toMatchObject({
      code: "GRAPH_NODE_FUNCTION",
      message: 'task "a" wants a function, run, got undefined',
    });
    expect(refused({ a: undefined })).toMatchObject({ code: "GRAPH_NODE_FUNCTION" });
  });

  test.each([null, undefined, 5, ["a"]])("because its tasks are %j", (tasks) => {
    expect(() => dag(tasks as never)).toThrow(configError("tasks", "wants an object, got"));
  });

  test.each([null, 5, []])("because its options are %j", (options) => {
    const make = () => dag<{ a: number }>({ a: { run: () => 1 } }, options as never);
    expect(make).toThrow(configError("options", "wants an object, got"));
  });

  test.each([null, 5, "ab", {}, [5]])("because a task depends on %j", (dependsOn) => {
    const make = () => dag({ a: { run }, b: { run }, ab: { dependsOn: dependsOn as never, run } });
    expect(make).toThrow(configError("tasks.ab.dependsOn", "wants an array of names of tasks"));
  });
});

describe("a dag that fails", () => {
  test("names the task, and its own error is the innermost cause", async () => {
    const boom = new Error("boom");
    const failure = await rejection(
      dag<Page>({
        ...tasks,
        links: { dependsOn: ["html"], run: () => Promise.reject(boom) },
      }).execute(page()),
      ExecutionError,
    );
    expect(failure.nodeName).toBe("2: words, links");
    expect(failure.cause).toBeInstanceOf(ParallelError);
    expect(failure.cause).toMatchObject({ message: 'item 1 ("links") failed: boom', cause: boom });
  });

  test("runs again what failed, and nothing that is done", async () => {
    const store = new MemoryStore();
    const counts = new Counts();
    let online = false;
    const counted = Object.fromEntries(
      Object.entries(tasks).map(([name, task]) => [
        name,
        {
          ...task,
          run: (...args: Parameters<typeof task.run>) => {
            counts.add(name);
            if (name === "links" && !online) throw new Error("offline");
            return task.run(...args);
          },
        },
      ]),
    ) as DagTasks<Page>;
    await rejection(dag(counted, saving(store)).execute(page()), ExecutionError);
    // Of the layer that failed, what is done is stored, and nothing else.
    expect(await finishedItems(store, "r")).toEqual([0]);
    expect((await store.load<Page>("r")).data).toEqual({ url: "/", html: "the page /" });
    online = true;
    const final = await dag(counted, saving(store)).resume("r");
    expect(final.data.report).toBe("3 words, 2 links");
    expect(counts.all).toEqual({ html: 1, words: 1, links: 2, report: 1 });
  });

  test("tries a layer again by its policy", async () => {
    let attempts = 0;
    const flaky = () => (++attempts < 3 ? Promise.reject(new Error("busy")) : ["/a"]);
    const retry = { maxAttempts: 3, initialInterval: 0 };
    const final = await dag<Page>(
      { ...tasks, links: { dependsOn: ["html"], run: flaky } },
      { retry },
    ).execute(page());
    expect(final.data.links).toEqual(["/a"]);
  });

  test("goes on with a graph whose later layers have changed, and not if a finished one has", async () => {
    const store = new MemoryStore();
    const dying = saving(new MortalStore(store, 5));
    await rejection(dag(tasks, dying).execute(page()), CheckpointSaveError);
    expect((await store.load("r")).checkpointNode).toBe("1: html");
    const { html: _html, ...others } = tasks;
    await expect(
      dag<Page>(
        { ...others, html: { dependsOn: ["url"], run: () => "" }, url: { run: () => "" } },
        saving(store),
      ).resume("r"),
    ).rejects.toThrow('there is no node "1: html"');
    const more = { ...tasks, report: { dependsOn: ["words"] as const, run: () => "short" } };
    expect((await dag<Page>(more, saving(store)).resume("r")).data.report).toBe("short");
  });
});
