/**
 * The customer-support graph of the LangGraph.js tutorials: conditional edges choose a specialist, and a refund
 * waits until a person approves it. Each ticket is a run; the server may restart while one waits. The API is an
 * offline stand-in.
 *
 * Run it: npx tsx examples/customer-support/main.ts
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { offlineClient } from "./offline.js";
import { supportGraph, type Ticket } from "./support.js";

const root = await mkdtemp(join(tmpdir(), "waymark-support-"));
const calls: string[] = [];
const refunds: string[] = [];

/** The graph, as each start of the server makes it. */
function server() {
  const client = offlineClient((role) => calls.push(role));
  return supportGraph(new FileStore({ root }), client, async (key) => {
    refunds.push(key);
  });
}

function ticket(runId: string, question: string): State<Ticket> {
  const messages: Ticket["messages"] = [{ role: "user", content: question }];
  return State.create<Ticket>({ messages, next: "nobody", refunded: false }, { runId });
}

function show({ runId, status, data, pauses }: State<Ticket>): void {
  const waits = pauses.map(({ reason }) => `, ${reason}`).join("");
  console.log(`${runId}: ${status}${waits}: ${String(data.messages.at(-1)?.content)}`);
}

try {
  const graph = server();
  show(await graph.execute(ticket("laptop", "My laptop does not start.")));
  const waiting = await graph.execute(ticket("order-17", "I was charged twice."));
  show(waiting);
  assert.equal(waiting.status, "paused");

  console.log("(the server is restarted)");
  const done = await server().resume("order-17", { input: { approved: true } });
  show(done);
  assert.ok(done.status === "completed" && done.data.refunded);
  console.log(`Refunded once, with the key ${refunds.join(", ")}`);
  assert.deepEqual(refunds, ["order-17:2:refund"]);
  assert.deepEqual(calls, ["front desk", "technical support", "front desk", "billing support"]);
} finally {
  await rm(root, { recursive: true, force: true });
}
