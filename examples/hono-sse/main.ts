/**
 * Runs as server-sent events, made with Hono: one reader leaves early, another comes late, and neither affects
 * the run. Nothing is published by hand.
 *
 * Run it: npx tsx examples/hono-sse/main.ts
 *
 * The requests below are answered in this process, without a port. To serve it for real, install
 * @hono/node-server: serve({ fetch: poemApp().fetch, port: 3000 });
 */
import assert from "node:assert/strict";
import { poemApp } from "./app.js";

const app = poemApp();
const body = JSON.stringify({ topic: "cairns" });
const created = await app.request("/runs", { method: "POST", body });
const { runId } = (await created.json()) as { runId: string };
assert.equal(created.status, 202);

/** A reader of the run's events. */
async function read(): Promise<ReadableStreamDefaultReader<string>> {
  const { body } = await app.request(`/runs/${runId}/events`);
  assert.ok(body !== null);
  return body.pipeThrough(new TextDecoderStream()).getReader();
}

const early = await read();
const first = await early.read();
console.log(`The first reader leaves after ${first.value?.split("\n", 1)[0]}`);
await early.cancel();

const late = await read();
let all = "";
for (let part = await late.read(); !part.done; part = await late.read()) all += part.value;
const words = [...all.matchAll(/^event: poem\.word\ndata: .*"word":"(\w+)"/gm)].map(([, w]) => w);
console.log(`The second reader got: ${words.join(" ")}`);
assert.equal(words.join(" "), "cairns above the snow cairns above the wind");
assert.match(all, /event: graph\.complete/);

const status = (await (await app.request(`/runs/${runId}`)).json()) as { state: string };
console.log(`The run is ${status.state}`);
assert.equal(status.state, "completed");
