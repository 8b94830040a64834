/**
 * A run that waits for a person. The process that asks ends; another one, seconds or weeks later, brings the
 * answer. Here each command is a process of its own, and the folder is all they share.
 *
 * Run it: npx tsx examples/human-approval/main.ts all of it, one after the other npx tsx
 * examples/human-approval/main.ts request FOLDER ID EUR asks for money npx tsx examples/human-approval/main.ts
 * waiting FOLDER lists what is waiting for an answer npx tsx examples/human-approval/main.ts answer FOLDER ID
 * yes answers, and the run continues
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isWaymarkError, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { type Purchase, purchaseGraph } from "./purchase.js";

const [command, folder = "", id = "", value = ""] = process.argv.slice(2);
const store = new FileStore({ root: folder || ".waymark" });

const commands: Readonly<Record<string, () => Promise<void>>> = {
  async request() {
    const start: Purchase = { eur: Number(value), checked: false, approval: "", order: "" };
    print(await purchaseGraph(store).execute(State.create(start, { runId: id })));
  },
  async waiting() {
    for (const { runId } of await store.runs({ status: "paused" })) print(await store.load(runId));
  },
  async answer() {
    try {
      print(await purchaseGraph(store).resume(id, { input: value }));
    } catch (error) {
      if (!isWaymarkError(error, "SCHEMA")) throw error;
      console.log(`  ${id}: refused, ${error.message}`);
      process.exitCode = 2;
    }
  },
};

/** One line on where a run is. */
function print({ runId, status, pauses, data }: State<Purchase>): void {
  const [pause] = pauses;
  const what = pause === undefined ? data.order : `${pause.reason}: ${String(pause.ask)}`;
  console.log(`  ${runId}: ${status}, ${what}`);
}

/** Runs a command in a process of its own, shows what it prints, and returns that. */
function run(...args: string[]): string {
  console.log(`\n> ${args.filter((arg) => !arg.startsWith(tmpdir())).join(" ")}`);
  const script = fileURLToPath(import.meta.url);
  try {
    const argv = [...process.execArgv, script, ...args];
    const output = execFileSync(process.execPath, argv, { encoding: "utf8" });
    process.stdout.write(output);
    return output;
  } catch (error) {
    const { status, stdout } = error as { status: number | null; stdout: string };
    if (status !== 2) throw error;
    process.stdout.write(stdout);
    return stdout;
  }
}

async function story(): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "waymark-approval-"));
  try {
    assert.match(run("request", root, "laptop", "1800"), /laptop: paused, .*Buy for 1800 EUR\?/);
    assert.match(run("request", root, "sauna", "9000"), /sauna: paused/);
    assert.match(run("waiting", root), /sauna: paused[\s\S]*laptop: paused/);
    assert.match(run("answer", root, "laptop", "perhaps"), /refused, .*must be yes or no/);
    assert.match(run("answer", root, "laptop", "yes"), /completed, ordered for 1800 EUR/);
    assert.match(run("answer", root, "sauna", "no"), /completed, not ordered/);
    const left = await new FileStore({ root }).runs({ status: "paused" });
    console.log(`\n${left.length} runs wait for an answer`);
    assert.equal(left.length, 0);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

await (commands[command ?? ""] ?? story)();
