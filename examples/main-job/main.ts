/**
 * A process works on a run and is killed with SIGKILL in the middle of a node. A second process,
 * which knows nothing but the folder and the run's id, goes on. Exit code 0 only if all of it held.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FileStore } from "waymark/stores/file";
import { killedIn, nodes } from "./article.js";
import type { Message } from "./message.js";

const root = await mkdtemp(join(tmpdir(), "waymark-main-job-"));
const runId = "cairns-article";
const hasColour = process.stdout.isTTY === true && !process.env.NO_COLOR;
const paint = (code: number, text: string): string =>
  hasColour ? `\u001b[${code}m${text}\u001b[0m` : text;
const green = (text: string): string => paint(32, text);
const red = (text: string): string => paint(31, text);
const grey = (text: string): string => paint(90, text);
const bold = (text: string): string => paint(1, text);
const say = (text = ""): void => console.log(text);
const line = (sign: string, node: string, text: string): void =>
  say(`  ${sign} ${node.padEnd(12)}${text}`);

/** What one process did. */
interface Life {
  readonly started: string[];
  readonly saved: string[];
  readonly signal: NodeJS.Signals | null;
  readonly ended: Extract<Message, { type: "ended" }> | undefined;
}

/** Lets a worker live until it ends, or until it has started the node that it is to be killed in. */
async function live(number: string, killIn?: string): Promise<Life> {
  const worker = fork(new URL("./worker.ts", import.meta.url), [root, runId]);
  say(bold(`\n${number} process, pid ${worker.pid}`));
  const [started, saved]: [string[], string[]] = [[], []];
  let ended: Life["ended"];
  worker.on("message", (message: Message) => {
    if (message.type === "ended") ended = message;
    if (message.type === "resumed") {
      const done = nodes.slice(0, message.step);
      for (const node of done) line(grey("-"), node, "skipped, it was saved");
    }
    if (message.type === "started") {
      started.push(message.node);
      if (message.node !== killIn) return;
      line(red("x"), message.node, red("running ... killed with SIGKILL"));
      worker.kill("SIGKILL");
    }
    if (message.type === "saved" && message.node !== "") {
      saved.push(message.node);
      const file = `checkpoint_${String(message.sequence).padStart(4, "0")}.json`;
      line(green("+"), message.node, `done, saved as ${file}`);
    }
  });
  // Both: what it has told may come in after it has ended.
  const [[, signal]] = await Promise.all([once(worker, "exit"), once(worker, "disconnect")]);
  return { started, saved, signal, ended };
}

function check(what: string, holds: boolean): void {
  say(`  ${holds ? green("yes") : red("NO ")}  ${what}`);
  if (!holds) process.exitCode = 1;
}

const same = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

try {
  say(`A run of ${nodes.length} nodes: ${nodes.join(" -> ")}`);
  say(`Its checkpoints are in ${join(root, runId)}`);
  const first = await live("First", killedIn);
  const before = nodes.slice(0, nodes.indexOf(killedIn));
  const after = nodes.slice(nodes.indexOf(killedIn));

  say(bold("\nOn the disk now"));
  for (const file of (await readdir(join(root, runId))).sort()) say(`    ${file}`);
  const left = await new FileStore({ root }).load(runId);
  say(
    `    the newest one: ${left.status}, ${left.step} nodes done, the last is "${left.checkpointNode}"`,
  );

  const second = await live("Second");

  say(bold("\nDid it hold?"));
  check("the first process really died of SIGKILL", first.signal === "SIGKILL");
  check(`it had saved ${before.join(", ")}`, same(first.saved, before));
  check(`the second process ran only ${after.join(", ")}`, same(second.started, after));
  const parts = nodes.map((node) => `${node} of cairns`);
  check(
    "the result is that of a run that was never interrupted",
    second.ended?.status === "completed" && same(second.ended.parts, parts),
  );
} finally {
  await rm(root, { recursive: true, force: true });
}
