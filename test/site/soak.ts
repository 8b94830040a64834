/**
 * `npm run soak -- [minutes] [speed]`: the studio's page open on a live run, and what it and its server hold in memory.
 *
 * At speed 1 the run takes a step a second; at speed 6, ten minutes are an hour of it.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { State, StateGraph } from "waymark";
import { eventLog } from "waymark/observers/event-log";
import { FileStore } from "waymark/stores/file";
import { nodeListener, studio } from "waymark/studio";
import { launch } from "./browser.js";

const token = "a-token-for-the-soak";
const STEP_MS = 1000;
const SAMPLES = 20;

/** What the server has held since it was last asked. */
interface Served {
  readonly heap: number;
  readonly step: number;
  readonly requests: number;
}

/** What the graph works on: bounded, so that only a leak can grow. */
interface Work {
  readonly rounds: number;
  readonly newest: readonly string[];
}

const [minutes = 60, speed = 1] = process.argv.slice(2).map(Number);
// The browser's driver remembers requests; it is not to be measured with the server.
await (process.send === undefined ? watch(minutes) : serve(speed));

/** The run and the studio, in a process of their own. */
async function serve(speed: number): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "waymark-soak-"));
  const store = new FileStore({ root });
  const observer = eventLog({ root });
  let step = 0;
  const work = async (data: Work, name: string): Promise<Partial<Work>> => {
    await wait(STEP_MS / speed);
    step++;
    return { rounds: data.rounds + 1, newest: [...data.newest, `${name} ${step}`].slice(-20) };
  };
  const graph = new StateGraph<Work>({
    name: "soak",
    observer,
    maxIterations: Number.MAX_SAFE_INTEGER,
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("fetch", ({ data }) => work(data, "fetched"))
    .addNode("judge", ({ data }, { ledger }) => {
      ledger.usage({ inputTokens: 900, outputTokens: 200, costUsd: 0.004 });
      ledger.decision({ description: "fetch more", rationale: `round ${data.rounds}` });
      return work(data, "judged");
    })
    .addNode("end", () => ({}))
    .addEdge("fetch", "judge")
    .addEdge("judge", "end", () => false, "enough")
    .addEdge("judge", "fetch")
    .setEntryPoint("fetch")
    .setExitPoint("end");
  const running = new AbortController();
  const run = graph
    .execute(State.create({ rounds: 0, newest: [] }, { runId: "soak" }), { signal: running.signal })
    .catch(() => "it is stopped");
  const handler = studio({
    store,
    token,
    graphs: [graph],
    log: { root },
    pollMs: Math.round(1000 / speed),
  });
  let requests = 0;
  const listener = nodeListener(handler);
  const server = createServer((request, response) => {
    requests++;
    listener(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  process.on("message", () => {
    globalThis.gc?.();
    process.send?.({ heap: process.memoryUsage().heapUsed, step, requests } satisfies Served);
  });
  process.send?.((server.address() as AddressInfo).port);
  await once(process, "disconnect");
  running.abort();
  await run;
  server.close();
  await handler.close();
  await observer.close();
  rmSync(root, { recursive: true, force: true });
  process.exit();
}

/** The page, looked at from time to time. */
async function watch(minutes: number): Promise<void> {
  const child = fork(fileURLToPath(import.meta.url), process.argv.slice(2), {
    execArgv: [...process.execArgv, "--expose-gc"],
  });
  const port = await answerOf<number>(child);
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
  await page.goto(`http://127.0.0.1:${port}/#/runs/soak?token=${token}`);
  await page.getByRole("heading", { name: "Events" }).waitFor();
  const session = await page.context().newCDPSession(page);
  const sample = async (atMinute: number): Promise<void> => {
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    const { nodes, jsEventListeners } = await session.send("Memory.getDOMCounters");
    child.send("look");
    const { heap, step, requests } = await answerOf<Served>(child);
    const figures = {
      minute: atMinute.toFixed(1),
      step,
      requests,
      "page MB": megabytes(usedSize),
      "DOM nodes": nodes,
      listeners: jsEventListeners,
      "server MB": megabytes(heap),
    };
    console.log(
      Object.entries(figures)
        .map(([name, value]) => `${name} ${value}`)
        .join("  "),
    );
  };
  try {
    for (let index = 0; index <= SAMPLES; index++) {
      await sample((minutes * index) / SAMPLES);
      if (index < SAMPLES) await wait((minutes * 60_000) / SAMPLES);
    }
  } finally {
    await browser.close();
    child.disconnect();
  }
}

async function answerOf<T>(child: ChildProcess): Promise<T> {
  const [answer] = await once(child, "message");
  return answer as T;
}

function megabytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
