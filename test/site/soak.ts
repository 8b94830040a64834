/**
 * `npm run soak -- [minutes] [speed]`: heap snapshots of the studio's page and of its server while a run is live.
 *
 * At speed 1 the run takes a step a second; at speed 6, ten minutes are an hour of it. Before the first snapshot the run
 * takes more steps than the page keeps, and every screen is opened once. Between snapshots somebody switches screens,
 * other clients reconnect to the stream again and again, and a few never read it. Exits with 1 if a heap has grown.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { writeHeapSnapshot } from "node:v8";
import type { CDPSession, Page } from "playwright-core";
import { State, StateGraph } from "waymark";
import { eventLog } from "waymark/observers/event-log";
import { FileStore } from "waymark/stores/file";
import { nodeListener, studio } from "waymark/studio";
import { launch } from "./browser.js";
import { growth, type Heap, heapOf, heapOfPage } from "./heap-snapshot.js";

const token = "a-token-for-the-soak";
const STEP_MS = 1000;
/** Steps that are taken at once, before the page is opened. */
const STEPS_BEFORE = 2500;
/** Snapshots after the first. */
const SNAPSHOTS = 4;
const WARM_UP_MS = 60_000;
/** The machine may be busy with something else. */
const PATIENCE_MS = 300_000;
/** How long the page stays on a screen. */
const SCREEN_MS = 5000;
/** How often a client reconnects to the stream. */
const RECONNECT_MS = 3000;
const SLOW_CLIENTS = 5;
/** A heap that is larger than this times the first has grown. */
const TOLERANCE = 1.1;
const screens = ["#/runs", "#/runs/soak?at=1200", "#/inbox", "#/figures", "#/runs?status=failed"];

/** The server's answer to a request for a snapshot. */
interface Served {
  readonly file: string;
  readonly rss: number;
  readonly step: number;
  readonly requests: number;
}

/** What the graph works on: bounded, so that only a leak can grow. */
interface Work {
  readonly rounds: number;
  readonly newest: readonly string[];
}

const [minutes = 60, speed = 1] = process.argv.slice(2).map(Number);
// In processes of their own, since the browser's driver remembers requests.
await (process.send === undefined ? watch(minutes) : serve(speed));

/** The run and the studio. */
async function serve(speed: number): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "waymark-soak-"));
  const store = new FileStore({ root });
  const observer = eventLog({ root });
  let step = 0;
  const work = async (data: Work, name: string): Promise<Partial<Work>> => {
    if (step === STEPS_BEFORE) process.send?.((server.address() as AddressInfo).port);
    if (step >= STEPS_BEFORE) await wait(STEP_MS / speed);
    step++;
    return { rounds: data.rounds + 1, newest: [...data.newest, `${name} ${step}`].slice(-20) };
  };
  const graph = new StateGraph<Work>({
    name: "soak",
    observer,
    maxIterations: Number.MAX_SAFE_INTEGER,
    checkpoint: { store, interval: 1, preserve: true, keep: Number.POSITIVE_INFINITY },
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
  const running = new AbortController();
  const run = graph
    .execute(State.create({ rounds: 0, newest: [] }, { runId: "soak" }), { signal: running.signal })
    .catch(() => "it is stopped");
  process.on("message", () => {
    const file = writeHeapSnapshot(join(root, "server.heapsnapshot"));
    const { rss } = process.memoryUsage();
    process.send?.({ file, rss, step, requests } satisfies Served);
  });
  await once(process, "disconnect");
  running.abort();
  await run;
  server.close();
  await handler.close();
  await observer.close();
  rmSync(root, { recursive: true, force: true });
  process.exit();
}

/** The page and the other clients, and a snapshot from time to time. */
async function watch(minutes: number): Promise<void> {
  const child = fork(fileURLToPath(import.meta.url), process.argv.slice(2));
  const port = await answerOf<number>(child);
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`http://127.0.0.1:${port}/#/runs/soak?token=${token}`);
  const session = await page.context().newCDPSession(page);
  const ending = new AbortController();
  const others = [
    reconnect(`http://127.0.0.1:${port}/api/events`, ending.signal),
    ...Array.from({ length: SLOW_CLIENTS }, () => stopReading(port, ending.signal)),
  ];
  const taken: { readonly page: Heap; readonly server: Heap }[] = [];
  try {
    await use(page, WARM_UP_MS);
    for (let index = 0; index <= SNAPSHOTS; index++) {
      if (index > 0) await use(page, (minutes * 60_000) / SNAPSHOTS);
      taken.push(await snapshots(page, session, child, (minutes * index) / SNAPSHOTS));
    }
  } finally {
    ending.abort();
    await Promise.allSettled(others);
    await browser.close();
    child.disconnect();
  }
  const [first, last] = [taken[0], taken.at(-1)];
  if (first === undefined || last === undefined) return;
  for (const side of ["page", "server"] as const) {
    console.log(`\n${side}: what has grown since the first snapshot`);
    for (const { name, count, bytes } of growth(first[side], last[side]).slice(0, 15)) {
      console.log(`  ${name}: ${signed(count)} objects, ${signed(bytes)} bytes`);
    }
    if (last[side].bytes <= first[side].bytes * TOLERANCE) continue;
    console.error(`the heap of the ${side} has grown by more than ${TOLERANCE}`);
    process.exitCode = 1;
  }
}

/** Switches screens, and stays on the run for as long as on all others together. */
async function use(page: Page, ms: number): Promise<void> {
  const end = performance.now() + ms;
  for (;;) {
    for (const screen of screens) {
      await show(page, screen);
      await wait(SCREEN_MS);
    }
    await show(page, "#/runs/soak");
    await page.getByRole("heading", { name: "Events" }).waitFor();
    const left = end - performance.now();
    await wait(Math.max(0, Math.min(left, SCREEN_MS * screens.length)));
    if (left <= SCREEN_MS * screens.length * 2) break;
  }
  await wait(Math.max(0, end - performance.now()));
}

async function show(page: Page, fragment: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(fragment)}`);
}

async function snapshots(
  page: Page,
  session: CDPSession,
  child: ChildProcess,
  atMinute: number,
): Promise<{ readonly page: Heap; readonly server: Heap }> {
  const ofPage = await heapOfPage(session);
  const { nodes, jsEventListeners } = await session.send("Memory.getDOMCounters");
  const elements = await page.locator("*").count();
  child.send("snapshot");
  const { file, rss, step, requests } = await answerOf<Served>(child);
  const ofServer = heapOf(readFileSync(file, "utf8"));
  rmSync(file);
  const figures = {
    minute: atMinute.toFixed(0),
    step,
    requests,
    "page MB": megabytes(ofPage.bytes),
    "page objects": ofPage.count,
    "detached nodes": ofPage.detached,
    elements,
    "DOM nodes": nodes,
    listeners: jsEventListeners,
    "server MB": megabytes(ofServer.bytes),
    "server objects": ofServer.count,
    "server RSS MB": megabytes(rss),
  };
  const texts = Object.entries(figures).map(([name, value]) => `${name} ${value}`);
  console.log(texts.join("  "));
  return { page: ofPage, server: ofServer };
}

/** A client that opens the stream, reads its first event and leaves, over and over. */
async function reconnect(url: string, signal: AbortSignal): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  while (!signal.aborted) {
    const leaving = new AbortController();
    const response = await fetch(url, { headers, signal: leaving.signal });
    await response.body?.getReader().read();
    leaving.abort();
    await wait(RECONNECT_MS, undefined, { signal });
  }
}

/** A client that opens the stream and never reads it. */
async function stopReading(port: number, signal: AbortSignal): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1" }).on("error", () => {});
  signal.addEventListener("abort", () => socket.destroy());
  socket.pause();
  socket.write(
    `GET /api/events HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${token}\r\n\r\n`,
  );
  await once(socket, "close");
}

async function answerOf<T>(child: ChildProcess): Promise<T> {
  const [answer] = await once(child, "message");
  return answer as T;
}

function megabytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}

function signed(count: number): string {
  return count < 0 ? String(count) : `+${count}`;
}
