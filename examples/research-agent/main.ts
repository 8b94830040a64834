/**
 * An agent that searches, reads, writes and revises until the reviewer is satisfied. The model and the web are
 * offline stand-ins, so it costs nothing and always ends the same way. It shows the ledger (what was used,
 * decided and produced), retries, a call that is paid for once, and a report, progress.md, that grows while the
 * agent works.
 *
 * Run it: npx tsx examples/research-agent/main.ts
 */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { State } from "waymark";
import { markdownProgress } from "waymark/observers/markdown";
import { FileStore } from "waymark/stores/file";
import { type Research, researchAgent } from "./agent.js";
import { calls } from "./model.js";

const root = await mkdtemp(join(tmpdir(), "waymark-research-"));
try {
  const progress = markdownProgress({ root });
  const agent = researchAgent(new FileStore({ root }), progress)
    .on("node.start", ({ data }) => console.log(`  ${data.step + 1}. ${data.node}`))
    .on("node.retry", ({ data }) => console.log(`     tried again: ${data.error}`))
    .on("decision", ({ data }) => console.log(`     -> ${data.description}, ${data.rationale}`));

  console.log("The agent works");
  const start: Research = {
    topic: "What are cairns for?",
    query: "cairns walkers",
    found: [],
    pages: [],
    text: "",
    review: { score: 0, missing: "" },
  };
  const final = await agent.execute(State.create(start, { runId: "cairns" }));
  await progress.close();

  const { ledger } = final;
  console.log("\nWhat it cost       tokens in    out       $");
  for (const [name, used] of [...Object.entries(ledger.nodes), ["all", ledger.usage] as const]) {
    const numbers = [used.inputTokens, used.outputTokens].map((count) => String(count).padStart(7));
    console.log(`  ${name.padEnd(17)} ${numbers.join("")}  ${used.costUsd.toFixed(6)}`);
  }

  const report = await readFile(join(root, "cairns", "progress.md"), "utf8");
  console.log("\nprogress.md");
  for (const line of report.trim().split("\n")) {
    if (!line.startsWith("<!--")) console.log(`  | ${line}`); // these are how it knows its sections
  }

  assert.equal(final.status, "completed");
  assert.deepEqual(final.visits, { search: 2, read: 2, write: 2, review: 2, publish: 1 });
  assert.deepEqual(calls, { write: 2, review: 2 }, "no call was paid for twice");
  assert.equal(ledger.decisions.length, 2);
  assert.equal(ledger.confidence, 1);
  const sum = Object.values(ledger.nodes).reduce((total, used) => total + used.inputTokens, 0);
  assert.equal(ledger.usage.inputTokens, sum);
  assert.equal(report.match(/^## /gm)?.length, 3, "two searches and the article");
} finally {
  await rm(root, { recursive: true, force: true });
}
