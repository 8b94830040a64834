/**
 * An agent whose process is killed in the middle of its loop. The next process repeats no saved call; then the
 * agent asks for an approval, which a third process gives. The model is an offline stand-in.
 *
 * Run it: npx tsx examples/agent-loop/main.ts
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { agentGraph, type Conversation } from "./agent.js";

const [folder, answer] = process.argv.slice(2);

/** One process: starts the run, or continues it. */
async function work(root: string): Promise<void> {
  const store = new FileStore({ root });
  const graph = agentGraph(store, async (name) => {
    console.log(`  ${name}`);
    await sleep(50);
  });
  const messages: Conversation["messages"] = [{ role: "user", content: "Write about cairns." }];
  const state =
    answer === undefined
      ? await graph.resumeOrStart(State.create<Conversation>({ messages }, { runId: "cairns" }))
      : await graph.resume("cairns", { input: answer === "yes" });
  for (const { reason, ask } of state.pauses) console.log(`  ${reason}: ${JSON.stringify(ask)}`);
}

/** Starts a process, kills it when it has said a line, and gives all that it said. */
async function life(root: string, args: readonly string[], killAt?: string): Promise<string[]> {
  const script = fileURLToPath(import.meta.url);
  const child = spawn(process.execPath, [...process.execArgv, script, root, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said: string[] = [];
  createInterface(child.stdout).on("line", (line) => {
    console.log(line);
    if (said.push(line.trim()) > 0 && line.trim() === killAt) child.kill("SIGKILL");
  });
  const [code, signal] = await once(child, "close");
  assert.ok(signal === "SIGKILL" || code === 0, `the process ended with ${code}`);
  return said;
}

async function story(): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "waymark-agent-"));
  try {
    console.log("First process, killed while it reads a page:");
    const first = await life(root, [], "read animals");
    console.log("Second process:");
    const second = await life(root, []);
    console.log("Third process, with the approval:");
    const third = await life(root, ["yes"]);

    const calls = [...first, ...second, ...third].filter((line) => !line.includes("approval"));
    const twice = calls.filter((call, at) => calls.indexOf(call) !== at);
    console.log(`Made twice: ${twice.join(", ")}, which was in flight`);
    assert.deepEqual(twice, ["read animals"]);
    assert.equal(calls.length, 10);

    const { data, ledger } = await new FileStore({ root }).load<Conversation>("cairns");
    const { inputTokens, outputTokens, costUsd, counters } = ledger.usage;
    console.log(`${data.messages.length} messages, ${counters.modelCalls} calls of the model`);
    console.log(`${inputTokens} + ${outputTokens} tokens, ${costUsd} USD`);
    assert.equal(counters.modelCalls, 5);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

await (folder === undefined ? story() : work(folder));
