/**
 * An endpoint that starts, pauses, resumes and shows runs, made with Hono. Runs continue in the background; a
 * request that starts one is answered once the run is on disk.
 *
 * Run it: npx tsx examples/http-endpoint/main.ts
 *
 * The requests below are answered in this process, without a port. To serve it for real, install
 * @hono/node-server, and when the server starts, continue the runs that the previous one left behind: await
 * recoverRuns({ store, graphs: [reportGraph(store)] }); serve({ fetch: reportApp(store).fetch, port: 3000 });
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { FileStore } from "waymark/stores/file";
import { reportApp } from "./app.js";
import { CHAPTERS, type Report } from "./report.js";

/** What a client gets. */
interface Answer {
  readonly runId: string;
  readonly status: string;
  readonly isRunning: boolean;
  readonly step: number;
  readonly waitsFor: readonly { readonly ask?: unknown }[];
  readonly data: Report;
  readonly error?: string;
}

const root = await mkdtemp(join(tmpdir(), "waymark-http-"));
let app = reportApp(new FileStore({ root }));

/** Sends a request. */
async function send(method: string, path: string, body?: object): Promise<[number, Answer]> {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await app.request(path, init);
  return [response.status, (await response.json()) as Answer];
}

/** Sends a request and shows how it was answered. */
async function shown(method: string, path: string, body?: object): Promise<[number, Answer]> {
  const [code, answer] = await send(method, path, body);
  const sent = body === undefined ? "" : JSON.stringify(body);
  console.log(`${method} ${path.replace(/[\da-f-]{36}/, "ID")} ${sent}`);
  console.log(`  ${code} ${answer.error ?? `${answer.status}, step ${answer.step}`}`);
  return [code, answer];
}

/** Asks again and again how a run is, as a client would, until it is so. */
async function until(runId: string, isSo: (answer: Answer) => boolean): Promise<Answer> {
  for (;;) {
    const [, answer] = await send("GET", `/runs/${runId}`);
    if (isSo(answer)) return answer;
    await wait(5);
  }
}

try {
  const [created, { runId }] = await shown("POST", "/runs", { topic: "cairns" });
  assert.equal(created, 202);
  await until(runId, ({ step }) => step >= 3);

  const [, stopped] = await shown("POST", `/runs/${runId}/pause`);
  assert.ok(stopped.status === "in_progress" && !stopped.isRunning && stopped.step < CHAPTERS);
  const [twice] = await shown("POST", `/runs/${runId}/pause`);
  assert.equal(twice, 409);

  console.log("(the server is restarted)");
  app = reportApp(new FileStore({ root }));
  await shown("POST", `/runs/${runId}/resume`, {});
  const { waitsFor } = await until(runId, ({ isRunning }) => !isRunning);
  console.log(`(the run asks: ${String(waitsFor[0]?.ask)})`);

  const [bad] = await shown("POST", `/runs/${runId}/resume`, { input: { approved: "perhaps" } });
  assert.equal(bad, 400);
  await shown("POST", `/runs/${runId}/resume`, { input: { approved: true } });
  await until(runId, ({ isRunning }) => !isRunning);
  const [found, final] = await shown("GET", `/runs/${runId}`);
  assert.equal(found, 200);
  assert.ok(final.status === "completed" && final.data.approved);
  const chapters = Array.from({ length: CHAPTERS }, (_, at) => `cairns, chapter ${at + 1}`);
  assert.deepEqual(final.data.chapters, chapters, "each chapter was written once");

  const [missing] = await shown("GET", "/runs/unknown");
  assert.equal(missing, 404);
  const diagram = await (await app.request(`/runs/${runId}/diagram`)).text();
  console.log(`GET /runs/ID/diagram\n${diagram.replace(/^/gm, "  ").trimEnd()}`);
} finally {
  await rm(root, { recursive: true, force: true });
}
