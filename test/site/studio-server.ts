import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CheckpointStore, END, type GraphConfig, State, StateGraph, subgraph } from "waymark";
import { eventLog } from "waymark/observers/event-log";
import { FileStore } from "waymark/stores/file";
import { SqliteStore } from "waymark/stores/sqlite";
import { nodeListener, type StudioOptions, studio } from "waymark/studio";
import { z } from "zod";
import { damage, graphsOf, makeRuns } from "../../examples/studio/runs.js";

export const token = "a-token-for-the-tests";

/** A studio on a port of this machine. */
export interface Served {
  readonly url: string;
  /** Stops listening, and cuts off who is connected. */
  stop(): Promise<void>;
  /** Listens again at the same address. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** Serves a studio. */
export async function serveStudio(options: StudioOptions): Promise<Served> {
  const handler = studio({ token, pollMs: 50, ...options });
  let server: Server;
  let port = 0;
  const start = async (): Promise<void> => {
    server = createServer(nodeListener(handler)).listen(port, "127.0.0.1");
    await once(server, "listening");
    ({ port } = server.address() as AddressInfo);
  };
  const stop = async (): Promise<void> => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  await start();
  const close = async (): Promise<void> => {
    server.close();
    await handler.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, start, stop, close };
}

/** Text that would do harm if it were taken for markup or script. */
export const hostile = `<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>"'\`\${alert(1)}`;

/** A word that has no room in any line. */
const longWord = "x".repeat(10_000);

/** Data with something large in it. */
interface Letter {
  readonly title: string;
  readonly pages: readonly string[];
  readonly scan: Uint8Array;
}

/** A graph of many nodes, a third of which a run gets to before it fails. */
function longGraph(store: CheckpointStore) {
  const graph = new StateGraph<{ n: number }, string>({
    name: "long",
    checkpoint: { store, interval: 1, preserve: true },
  });
  const name = (index: number): string => `stage ${index + 1}`;
  for (let index = 0; index < 100; index++) {
    graph.addNode(name(index), ({ data }) => {
      if (index === 33) throw new Error("stage 34 is not ready");
      return { n: data.n + 1 };
    });
  }
  for (let index = 0; index < 99; index++) {
    graph.addEdge(name(index), name(index + 1), ({ data }) => data.n >= 0, index % 10 ? "" : "on");
    if (index % 7 === 0 && index + 3 < 100) graph.addEdge(name(index), name(index + 3));
  }
  return graph.setEntryPoint(name(0)).setExitPoint(name(99));
}

/** A graph with a choice of many nodes, and a long graph inside. */
function wideGraph(store: CheckpointStore) {
  const inner = new StateGraph<{ n: number }, string>({ name: "inner" });
  for (let index = 1; index <= 20; index++) {
    inner.addNode(`inner ${index}`, () => ({}));
    if (index > 1) inner.addEdge(`inner ${index - 1}`, `inner ${index}`);
  }
  inner.setEntryPoint("inner 1").setExitPoint("inner 20");
  const graph = new StateGraph<{ n: number }, string>({
    name: "wide",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("choose", () => ({}))
    .addNode("process", subgraph(inner, { in: () => ({ n: 0 }), out: () => ({}) }));
  for (let index = 1; index <= 30; index++) {
    graph
      .addNode(`option ${index}`, () => {
        throw new Error("not today");
      })
      .addEdge("choose", `option ${index}`, ({ data }) => data.n === index, `n is ${index}`)
      .addEdge(`option ${index}`, "process");
  }
  return graph.setEntryPoint("choose").setExitPoint("process");
}

/** A graph with a text in every field that has room for one. */
function filledWith(text: string, config: GraphConfig<Record<string, string>>) {
  return new StateGraph<Record<string, string>, string>({ ...config, name: text })
    .addNode(
      text,
      (_state, { ledger }) => {
        ledger.usage({ inputTokens: 1, costUsd: 1, counters: { [text]: 1 } });
        ledger.decision({ description: text, rationale: text, agent: text, alternatives: [text] });
        ledger.agent(text, { status: text, blockers: [text], lastDecision: text });
        ledger.output(text, text);
        return { [text]: text, link: "javascript:window.harmed=1" };
      },
      { phase: text },
    )
    .addNode("ask", async (_state, context) => {
      await context.pause(text, { reason: text, ask: { [text]: text } });
      throw new Error(text);
    })
    .addEdge(text, "ask", () => true, text)
    .addEdge(text, END)
    .setEntryPoint(text)
    .setExitPoint("ask");
}

/** What a person is asked by a schema with everything in it. */
const order = z.object({
  decision: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("approve"), amount: z.number().gt(0).max(500) }),
    z.object({ kind: z.literal("reject"), why: z.string().min(5) }),
  ]),
  contact: z.union([z.email(), z.object({ phone: z.string().regex(/^\+\d+$/) })]),
  labels: z.record(z.string(), z.number()),
  lines: z.array(z.object({ sku: z.string(), count: z.int().min(1).default(1) })).min(1),
  due: z.iso.date().nullable(),
  at: z.iso.datetime(),
  ship: z.object({ street: z.string() }).optional(),
  range: z.tuple([z.number(), z.number()]),
  level: z.literal(3),
  rest: z.unknown(),
});

/** A graph that asks with {@link order}. */
function orderGraph(store: CheckpointStore) {
  return new StateGraph<{ answer: z.infer<typeof order> | undefined }>({
    name: "order",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("ask", async (_state, context) => ({
      answer: await context.pause("order", { reason: "What about order B-22?", schema: order }),
    }))
    .setEntryPoint("ask")
    .setExitPoint("ask");
}

/** Runs of every kind in a folder, and a studio on them. */
export async function serveSamples() {
  const root = mkdtempSync(join(tmpdir(), "waymark-studio-"));
  const store = new FileStore({ root });
  const observer = eventLog({ root });
  const samples = graphsOf({ store, observer });
  await makeRuns({ store, observer });
  const state = await store.load<object>("article-cairns");
  await State.fromJSON({
    ...state.toJSON(),
    runId: "broken",
    checkpointId: "",
    sequence: 0,
  }).checkpoint(store);
  await damage(root, "broken");
  const letter = new StateGraph<Letter>({
    name: "letter",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("write", () => ({
      pages: Array.from({ length: 5000 }, (_, page) => `page ${page} of the letter`),
      scan: new Uint8Array(6000).fill(0xab),
    }))
    .setEntryPoint("write")
    .setExitPoint("write");
  await letter.execute(
    State.create({ title: "long", pages: [], scan: new Uint8Array() }, { runId: "letter" }),
  );
  const large = { title: "x".repeat(600_000), pages: [], scan: new Uint8Array() };
  await letter.execute(State.create(large, { runId: "letter-large" }));
  const setting = { observer, checkpoint: { store, interval: 1, preserve: true } as const };
  const bad = filledWith(hostile, setting);
  const wordy = filledWith(longWord, setting);
  const metadata = { [hostile]: hostile, customer: hostile };
  await bad.execute(State.create({}, { runId: "hostile-paused", metadata }));
  await bad.execute(State.create({}, { runId: "hostile-failed", metadata }));
  await bad.resume("hostile-failed", { input: hostile }).catch(() => "it is meant to fail");
  await wordy.execute(State.create({}, { runId: "wordy-paused" }));
  await wordy.execute(State.create({}, { runId: "wordy-failed" }));
  await wordy.resume("wordy-failed", { input: longWord }).catch(() => "it is meant to fail");
  const loop = new StateGraph<{ n: number }>({ ...setting, name: "loop" })
    .addNode("think", ({ data }) => ({ n: data.n + 1 }))
    .addNode("act", () => ({}))
    .addEdge("think", "act")
    .addEdge("act", "think", ({ data }) => data.n < 12, "again")
    .addEdge("act", END)
    .setEntryPoint("think");
  await loop.execute(State.create({ n: 0 }, { runId: "loop" }));
  const long = longGraph(store);
  await long.execute(State.create({ n: 0 }, { runId: "long" })).catch(() => "it is meant to fail");
  const wide = wideGraph(store);
  await wide.execute(State.create({ n: 7 }, { runId: "wide" })).catch(() => "it is meant to fail");
  const asking = orderGraph(store);
  await asking.execute(State.create({ answer: undefined }, { runId: "order" }));

  /** A run that works until it is let go of, or cancelled. */
  let release = (): void => {};
  const patient = new StateGraph<{ n: number }>({
    name: "patient",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("first", ({ data }) => ({ n: data.n + 1 }))
    .addNode(
      "wait",
      (_state, { signal }) =>
        new Promise<object>((resolve, reject) => {
          release = () => resolve({});
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        }),
    )
    .addEdge("first", "wait")
    .setEntryPoint("first")
    .setExitPoint("wait");
  const graphs = [...Object.values(samples), letter, bad, wordy, loop, long, wide, asking, patient];
  const served = await serveStudio({ store, name: "file:.waymark", graphs, log: { root } });
  return {
    ...served,
    store,
    release: () => release(),
    startRun: (runId: string) => patient.start(State.create({ n: 0 }, { runId })),
    async close() {
      await served.close();
      await observer.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Ten thousand runs in a database, and a studio that only looks. */
export async function serveMany() {
  const folder = mkdtempSync(join(tmpdir(), "waymark-many-"));
  const store = new SqliteStore({ path: join(folder, "waymark.db") });
  const saves = Array.from({ length: 10_000 }, (_, index) => {
    const runId = `run-${String(index).padStart(5, "0")}`;
    const metadata = { customer: `c${index % 50}` };
    return store.save(State.create({ n: index }, { runId, metadata }));
  });
  await Promise.all(saves);
  const served = await serveStudio({ store, name: "sqlite:waymark.db", readOnly: true });
  return {
    ...served,
    store,
    async close() {
      await served.close();
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
