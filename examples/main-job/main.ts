/**
 * A process works on a run and is killed with SIGKILL in the middle of a node. A second process, which knows
 * only the folder and the run's id, continues it. The exit code is 0 only if everything worked.
 *
 * Run it: npx tsx examples/main-job/main.ts, or npm start
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AnyEvent } from "waymark";
import { FileStore } from "waymark/stores/file";
import { type Article, killedIn, nodes } from "./article.js";
import { Screen } from "./screen.js";

const root = await mkdtemp(join(tmpdir(), "waymark-main-job-"));
const store = new FileStore({ root });
const runId = "cairns-article";
const screen = new Screen(nodes.length);
const { green, red, grey, bold } = screen;
const say = (text?: string): void => screen.say(text);
const line = (sign: string, node: string, text: string): void =>
  say(`  ${sign} ${node.padEnd(12)}${text}`);

/** What one process did. */
interface Life {
  readonly started: string[];
  readonly saved: string[];
  readonly signal: NodeJS.Signals | null;
}

/** Lets a worker live until it ends, or until it has started the node that it is to be killed in. */
async function live(number: string, killIn = ""): Promise<Life> {
  const worker = fork(new URL("./worker.ts", import.meta.url), [root, runId, killIn]);
  say(bold(`\n${number} process, pid ${worker.pid}`));
  const [started, saved]: [string[], string[]] = [[], []];
  worker.on("message", (event: AnyEvent) => {
    screen.show(event);
    if (event.type === "checkpoint.resume") {
      const done = nodes.slice(0, event.data.step);
      for (const node of done) line(grey("-"), node, "skipped, it was saved");
    }
    if (event.type === "node.start") {
      const { node } = event.data;
      started.push(node);
      if (node !== killIn) return;
      line(red("x"), node, red("running ... killed with SIGKILL"));
      worker.kill("SIGKILL");
    }
    if (event.type === "checkpoint.save" && event.data.node !== "") {
      const { node, sequence } = event.data;
      saved.push(node);
      const file = `checkpoint_${String(sequence).padStart(4, "0")}.json`;
      line(green("+"), node, `done, saved as ${file}`);
    }
  });
  // Both: what it has sent may arrive after it has ended.
  const [[, signal]] = await Promise.all([once(worker, "exit"), once(worker, "disconnect")]);
  return { started, saved, signal };
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
  const left = await store.load(runId);
  say(
    `    the newest one: ${left.status}, ${left.step} nodes done, the last is "${left.checkpointNode}"`,
  );

  const second = await live("Second");
  const final = await store.load<Article>(runId);

  say(bold("\nDid it hold?"));
  check("the first process really died of SIGKILL", first.signal === "SIGKILL");
  check(`it had saved ${before.join(", ")}`, same(first.saved, before));
  check(`the second process ran only ${after.join(", ")}`, same(second.started, after));
  const parts = nodes.map((node) => `${node} of cairns`);
  check(
    "the result is that of a run that was never interrupted",
    final.status === "completed" && same(final.data.parts, parts),
  );
} finally {
  await rm(root, { recursive: true, force: true });
}
