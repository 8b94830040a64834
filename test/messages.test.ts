import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import * as waymark from "waymark";
import {
  chain,
  dag,
  END,
  isWaymarkError,
  Ledger,
  MemoryStore,
  type NodeFunction,
  PauseTimeoutError,
  parallel,
  pause,
  route,
  State,
  StateGraph,
  WaymarkError,
} from "waymark";
import { FileStore } from "waymark/stores/file";
import { RedisStore } from "waymark/stores/redis";
import { SqliteStore } from "waymark/stores/sqlite";
import { useFakeClock } from "waymark/testing";
import { Client } from "waymark/worker";
import { z } from "zod";
import { errorTable } from "../src/errors/table.js";

/*
 * What users read when something is wrong, one of each kind, in `messages.txt`: a text to be read in one go. A mistake
 * that a type would have caught is made through `wrong`.
 */

const root = mkdtempSync(join(tmpdir(), "waymark-messages-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const wrong = <T>(value: unknown): T => value as T;
const first = () => State.create({ n: 0 }, { runId: "monday" });
const store = () => new MemoryStore();

type Data = { n: number };
type Options = ConstructorParameters<typeof StateGraph<Data>>[0];

/** A graph of one node. */
function one(node: NodeFunction<Data>, options: Options = {}) {
  return new StateGraph<Data>(options)
    .addNode("one", node)
    .addEdge("one", END)
    .setEntryPoint("one");
}

const run = (node: NodeFunction<Data>, options?: Options) => one(node, options).execute(first());
const config = (options: unknown) => new StateGraph<Data>(wrong(options));
const node = () => ({ n: 1 });

/** Each with what the user did. */
const mistakes: readonly (readonly [string, () => unknown])[] = [
  ["an empty node name", () => new StateGraph<Data>().addNode("", node)],
  ["a second node of a name", () => new StateGraph<Data>().addNode("a", node).addNode("a", node)],
  [
    "a node that is no function",
    () => new StateGraph<Data>().addNode("a", wrong<NodeFunction<Data>>(1)),
  ],
  [
    "a misspelt node in an edge",
    () => new StateGraph<Data>().addNode("draft", node).addEdge(wrong("drft"), END),
  ],
  [
    "a predicate that is no function",
    () => new StateGraph<Data>().addNode("a", node).addEdge("a", END, wrong(true)),
  ],
  [
    "a second entry point",
    () => new StateGraph<Data>().addNode("a", node).setEntryPoint("a").setEntryPoint("a"),
  ],
  ["no nodes", () => new StateGraph<Data>().validate()],
  ["no entry point", () => new StateGraph<Data>().addNode("a", node).addEdge("a", END).validate()],
  ["no exit", () => new StateGraph<Data>().addNode("a", node).setEntryPoint("a").validate()],
  ["a node that nothing leads to", () => one(node).addNode("b", node).addEdge("b", END).validate()],
  [
    "a node that leads nowhere",
    () =>
      new StateGraph<Data>()
        .addNode("a", node)
        .addNode("b", node)
        .addEdge("a", "b")
        .addEdge("a", END)
        .setEntryPoint("a")
        .validate(),
  ],
  [
    "tasks that wait for each other",
    () =>
      dag<{ a: number; b: number }>(
        wrong({ a: { dependsOn: ["b"], run: node }, b: { dependsOn: ["a"], run: node } }),
      ),
  ],
  ["data in place of a State", () => one(node).execute(wrong({ n: 0 }))],
  ["data in place of a State for a stream", () => one(node).stream(wrong({ n: 0 }))],
  ["data in place of a State for nextNode", () => one(node).nextNode(wrong({ n: 0 }))],
  ["nothing to resume", () => one(node).resume(wrong(null))],
  ["a task that is a number", () => dag<Data>(wrong({ n: 1 }))],
  [
    "a text as decision",
    () =>
      run((state, { ledger }) => {
        ledger.decision(wrong("publish"));
        return state;
      }),
  ],
  [
    "a text as agent",
    () =>
      run((state, { ledger }) => {
        ledger.agent("writer", wrong("busy"));
        return state;
      }),
  ],
  ["a ledger merged with none", () => Ledger.empty.merge(Ledger.empty, wrong(undefined))],
  [
    "another graph, with onMismatch: error",
    async () => {
      const checkpoint = { store: store(), interval: 1, preserve: true };
      await one(node, { checkpoint }).execute(first());
      const other = one(node, { checkpoint, onMismatch: "error" })
        .addNode("two", node)
        .addEdge("two", END)
        .addEdge("one", "two");
      await other.resume("monday");
    },
  ],
  [
    "a node that throws",
    () =>
      run(() => {
        throw new Error("the network is down");
      }),
  ],
  ["a node that returns a number", () => run(wrong(() => 1))],
  [
    "a node that mutates the State",
    () =>
      run((state) => {
        wrong<Data>(state.data).n = 2;
        return state;
      }),
  ],
  [
    "a predicate that throws",
    () =>
      new StateGraph<Data>()
        .addNode("a", node)
        .addEdge("a", END, () => {
          throw new Error("oops");
        })
        .setEntryPoint("a")
        .execute(first()),
  ],
  [
    "no edge that matches",
    () =>
      new StateGraph<Data>()
        .addNode("a", node)
        .addEdge("a", END, () => false)
        .setEntryPoint("a")
        .execute(first()),
  ],
  [
    "a loop that does not end",
    () =>
      new StateGraph<Data>({ maxIterations: 3 })
        .addNode("a", node)
        .addEdge("a", "a")
        .addEdge("a", END)
        .setEntryPoint("a")
        .execute(first()),
  ],
  ["a cancelled run", () => one(node).execute(first(), { signal: AbortSignal.abort() })],
  [
    "a step of a chain that throws",
    () =>
      run(
        chain(["x", "y"], (_state, item) => {
          if (item === "y") throw new Error("offline");
          return _state;
        }),
      ),
  ],
  [
    "an item that throws",
    () =>
      run(
        parallel(["x"], () => {
          throw new Error("offline");
        }),
      ),
  ],
  ["a route that does not exist", () => run(route(() => "left", { right: node }))],
  [
    "a choice that throws",
    () =>
      run(
        route(
          () => {
            throw new Error("no idea");
          },
          { right: node },
        ),
      ),
  ],
  [
    "a handler that throws",
    () =>
      run(
        route(() => "right", {
          right: () => {
            throw new Error("offline");
          },
        }),
      ),
  ],
  [
    "a run that is not there",
    () => one(node, { checkpoint: { store: store(), interval: 1 } }).resume("monday"),
  ],
  [
    "a run that is removed when it completes",
    async () => {
      const graph = one(node, { checkpoint: { store: store(), interval: 1 } });
      await graph.execute(first());
      await graph.resume("monday");
    },
  ],
  [
    "a checkpoint file that is damaged",
    async () => {
      const files = new FileStore({ root });
      await first().checkpoint(files);
      writeFileSync(join(root, "monday", "checkpoint_0001.json"), "oops");
      await files.load("monday");
    },
  ],
  [
    "a file that is no database",
    async () => {
      writeFileSync(
        join(root, "notes.db"),
        "dear diary, this is not a database at all, it is a text with enough bytes to be looked at: ".repeat(
          3,
        ),
      );
      await new SqliteStore({ path: join(root, "notes.db") }).load("monday");
    },
  ],
  [
    "a checkpoint that is too large",
    () => new FileStore({ root: join(root, "small"), maxBytes: 10 }).save(first()),
  ],
  [
    "a second save of one State",
    async () => {
      const memory = store();
      await first().checkpoint(memory);
      await first().checkpoint(memory);
    },
  ],
  [
    "a run that somebody works on",
    async () => {
      const memory = store();
      await first().checkpoint(memory);
      await memory.claim("monday");
      await one(node, { checkpoint: { store: memory, interval: 1 } }).resume("monday");
    },
  ],
  [
    "a function in the data",
    () => State.create({ deep: { callback: () => 1 } }).checkpoint(store()),
  ],
  [
    "data of a newer version",
    async () => {
      const checkpoint = { store: store(), interval: 1, preserve: true };
      await one(node, { version: 3, checkpoint }).execute(first());
      await one(node, {
        version: 2,
        migrations: { 0: wrong(node), 1: wrong(node) },
        checkpoint,
      }).resume("monday");
    },
  ],
  [
    "data without a migration",
    async () => {
      const checkpoint = { store: store(), interval: 1, preserve: true };
      await one(node, { checkpoint }).execute(first());
      await one(node, { version: 2, migrations: { 1: wrong(node) }, checkpoint }).resume("monday");
    },
  ],
  [
    "data that does not fit its schema",
    () => {
      const schema = z.object({ n: z.number().max(1), name: z.string() });
      const graph = new StateGraph({ schema })
        .addNode("a", (state) => state)
        .addEdge("a", END)
        .setEntryPoint("a");
      return graph.execute(State.create(wrong({ n: 2 })));
    },
  ],
  [
    "an answer that comes too late",
    async () => {
      const clock = useFakeClock();
      try {
        const checkpoint = { store: store(), interval: 1 };
        const graph = one(
          async (_state, context) => {
            await context.pause("approval", { reason: "an approval", timeout: 1000 });
            return { n: 1 };
          },
          { checkpoint },
        );
        await graph.execute(first());
        await clock.advance(2000);
        await graph.resume("monday").catch((error: unknown) => {
          throw isWaymarkError(error, "NODE_FAILED") && error.cause instanceof PauseTimeoutError
            ? error.cause
            : error;
        });
      } finally {
        clock.restore();
      }
    },
  ],
  [
    "input for a run that did not ask",
    async () => {
      const checkpoint = { store: store(), interval: 1 };
      const failing = one(
        () => {
          throw new Error("offline");
        },
        { checkpoint },
      );
      await failing.execute(first()).catch(() => {});
      await failing.resume("monday", { input: "yes" });
    },
  ],
  [
    "a store whose server is down",
    async () => {
      const server = new RedisStore({ url: "redis://127.0.0.1:1", retryFor: 0 });
      try {
        await server.list();
      } finally {
        await server.close();
      }
    },
  ],
  [
    "a queue whose server is down",
    async () => {
      const connection = { url: "postgres://127.0.0.1:1/queue", retryFor: 0 };
      const client = new Client({ connection, store: store(), onError: () => {} });
      await client.failed("monday").finally(() => client.close());
    },
  ],
  ["a pause that is never saved", () => run((state) => pause(state, { reason: "an approval" }))],
  ["an unknown option", () => config({ maxIteration: 3 })],
  ["maxIterations -1", () => config({ maxIterations: -1 })],
  ["a mode that does not exist", () => config({ checkpoint: { mode: "lazy" } })],
  ["keep 1", () => config({ checkpoint: { interval: 1, keep: 1 } })],
  ["an interval of half a node", () => config({ checkpoint: { interval: 0.5 } })],
  [
    "a store that is not registered",
    () =>
      config({ checkpoint: { store: "cloud", interval: 1 } })
        .addNode("a", node)
        .addEdge("a", END)
        .setEntryPoint("a")
        .execute(first()),
  ],
  ["a store that is none", () => config({ checkpoint: { store: {}, interval: 1 } })],
  ["an empty run id", () => State.create({ n: 0 }, { runId: "" })],
  [
    "metadata with an object in it",
    () => State.create({ n: 0 }, { metadata: wrong({ user: {} }) }),
  ],
  [
    "a retry of no attempts",
    () => new StateGraph<Data>().addNode("a", node, { retry: { maxAttempts: 0 } }),
  ],
  ["a timeout of 0", () => new StateGraph<Data>().addNode("a", node, { timeout: 0 })],
  ["a reducer that is no function", () => config({ reducers: { n: "sum" } })],
];

test("messages say what happened, what was expected and what to do", async () => {
  const said: string[] = [];
  const codes = new Set<string>();
  for (const [title, action] of mistakes) {
    const error: unknown = await Promise.resolve()
      .then(action)
      .then(
        () => undefined,
        (reason: unknown) => reason,
      );
    const inner =
      error instanceof WaymarkError && error.cause instanceof WaymarkError ? error.cause : error;
    for (const each of [error, inner]) {
      if (!(each instanceof WaymarkError)) continue;
      codes.add(each.code);
      expect(each).toBeInstanceOf(Reflect.get(waymark, errorTable[each.code].class));
    }
    const text =
      error instanceof WaymarkError ? `${error.code}: ${error.message}` : `NOTHING: ${error}`;
    const steady = text
      .replaceAll(root, "ROOT")
      .replaceAll(`process ${process.pid}`, "process PID")
      .replace(/\bon \S+( \(|,| since)/g, "on HOST$1")
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME");
    said.push(`${title}\n    ${steady}`);
  }
  await expect(`${said.join("\n\n")}\n`).toMatchFileSnapshot("messages.txt");
  expect(Object.keys(errorTable).filter((code) => !codes.has(code))).toEqual([]);
});
