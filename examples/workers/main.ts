/**
 * Twelve orders and three workers, each in a process of its own. One worker is killed with SIGKILL while it
 * charges an order; another takes that order over and continues where it left off.
 *
 * Run it: npx tsx examples/workers/main.ts
 */
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { PostgresStore } from "waymark/stores/postgres";
import { Client } from "waymark/worker";
import { openDatabase } from "./database.js";
import type { Order, WorkerMessage } from "./orders.js";

const LEASE = 2000;
const nodes = ["reserve", "charge", "ship"];

/** Which workers have begun each node of each order. */
const begun = new Map<string, string[]>();
const saved = new Set<string>();
const again: string[] = [];
/** What the bank was asked to charge, and by which key: the same key again changes nothing. */
const asked: string[] = [];
let killed: { readonly order: string; readonly at: number } | undefined;
let takenOverAfter = 0;

function receive(name: string, child: ChildProcess, message: WorkerMessage): void {
  if (message.what === "ready") return;
  const place = `${message.order} ${message.node}`;
  if (message.what === "saved") {
    saved.add(place);
    return;
  }
  if (saved.has(place)) again.push(place);
  begun.set(place, [...(begun.get(place) ?? []), name]);
  if (message.node === "charge") asked.push(message.key);
  if (place === "order-05 charge" && killed === undefined) {
    child.kill("SIGKILL");
    killed = { order: message.order, at: Date.now() };
    console.log(`Worker ${name} is killed with SIGKILL while it charges ${message.order}`);
    return;
  }
  if (place === "order-05 charge" && takenOverAfter === 0) {
    takenOverAfter = Date.now() - (killed?.at ?? 0);
  }
  // One that was killed meanwhile hears nothing.
  child.send(place, () => {});
}

async function start(name: string, url: string): Promise<ChildProcess> {
  const child = fork(new URL("./worker.ts", import.meta.url), [url, String(LEASE)]);
  child.on("message", (message: WorkerMessage) => receive(name, child, message));
  await once(child, "message");
  return child;
}

const database = await openDatabase();
const store = new PostgresStore({ client: database.url });
const client = new Client({ connection: database.url, store });
try {
  const workers = await Promise.all(["A", "B", "C"].map((name) => start(name, database.url)));
  console.log("Three workers wait for work");

  const ids = Array.from(
    { length: 12 },
    (_, index) => `order-${String(index + 1).padStart(2, "0")}`,
  );
  const order: Order = { item: "a map", receipt: "", parcel: "" };
  const runs = await Promise.all(ids.map((runId) => client.submit("orders", order, { runId })));
  const finals = await Promise.all(runs.map((run) => run.result()));

  for (const runId of ids) {
    const row = nodes.map((node) => `${node} ${begun.get(`${runId} ${node}`)?.join(", then ")}`);
    console.log(`  ${runId}  ${row.join("  ")}`);
  }
  console.log(`${killed?.order} was taken over after ${(takenOverAfter / 1000).toFixed(1)} s`);
  console.log(`The bank was asked ${asked.length} times, with ${new Set(asked).size} keys.`);

  // Those that are left finish what they do and stop.
  const left = workers.filter(({ signalCode }) => signalCode === null);
  const stopped = left.map((child) => once(child, "exit"));
  for (const child of left) child.kill("SIGTERM");
  const signals = (await Promise.all(stopped)).map(([, signal]) => signal);

  assert.deepEqual(
    finals.map(({ status }) => status),
    ids.map(() => "completed"),
    "no order is lost",
  );
  assert.deepEqual(again, [], "no node ran again whose result was saved");
  assert.equal(new Set(asked).size, ids.length, "each order is charged under one key");
  assert.ok(takenOverAfter > 0, "what the killed one had is taken over");
  assert.deepEqual(signals, ["SIGTERM", "SIGTERM"]);
  console.log("Every order was shipped, and no node ran again whose result was saved.");
} finally {
  await client.close();
  await store.close();
  await database.stop();
}
