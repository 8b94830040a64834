/**
 * Counts the words of 1,000 documents, eight at a time. The process is killed with SIGKILL half-way; a second
 * one continues. Saved documents are not processed again, and the result is correct.
 *
 * Run it: npx tsx examples/map-reduce/main.ts
 */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteStore } from "waymark/stores/sqlite";
import { type Counts, countWords, documentAt, sum, total } from "./documents.js";

const root = await mkdtemp(join(tmpdir(), "waymark-map-reduce-"));

/** What a process did, according to its diary. */
interface Life {
  readonly signal: NodeJS.Signals | null;
  /** How many documents were done when it began. */
  readonly found: number;
  /** Those it worked on. */
  readonly done: readonly number[];
  /** Those of them that were surely acknowledged. */
  readonly saved: readonly number[];
}

async function live(number: number, killAt = 0): Promise<Life> {
  const diary = join(root, `process-${number}.txt`);
  const args = [join(root, "waymark.db"), diary, String(killAt)];
  const worker = fork(new URL("./worker.ts", import.meta.url), args);
  worker.on("message", (completed) => {
    if (completed === killAt) worker.kill("SIGKILL");
  });
  const [[, signal]] = await Promise.all([once(worker, "exit"), once(worker, "disconnect")]);
  let found = 0;
  const done: number[] = [];
  let [saved, saving]: [number, number] = [0, 0];
  for (const line of (await readFile(diary, "utf8")).split("\n")) {
    const [what, count] = line.split(" ");
    if (what === "found") found = Number(count);
    if (what === "done") done.push(Number(count));
    // A save holds what was done when the one before it ended, or more.
    if (what === "saved") [saved, saving] = [saving, done.length];
  }
  return { signal, found, done, saved: done.slice(0, saved) };
}

try {
  const first = await live(1, 300);
  console.log(`First process: ${first.done.length} documents, killed with ${first.signal}`);
  console.log(`  surely acknowledged by then: ${first.saved.length}`);
  const second = await live(2);
  console.log(`Second process: found ${second.found} done, worked on ${second.done.length}`);
  const again = second.done.filter((index) => first.done.includes(index));
  console.log(`  worked on twice, because the crash came before they were saved: ${again.length}`);

  const store = new SqliteStore({ path: join(root, "waymark.db") });
  const final = await store.load<{ counts: Counts }>("words-of-monday");
  await store.close();
  const expected = sum(Array.from({ length: total }, (_, index) => countWords(documentAt(index))));
  console.log("Most used words");
  const ranking = Object.entries(final.data.counts).sort(([, one], [, other]) => other - one);
  for (const [word, count] of ranking.slice(0, 5)) console.log(`  ${word.padEnd(8)}${count}`);

  assert.equal(first.signal, "SIGKILL");
  assert.ok(first.saved.length > 0 && first.done.length < total, "it was killed on the way");
  const doneAgain = new Set(second.done);
  const twice = first.saved.filter((index) => doneAgain.has(index));
  assert.deepEqual(twice, [], "nothing is worked on again that was acknowledged");
  assert.equal(second.found + second.done.length, total, "and nothing else that was found");
  assert.equal(doneAgain.size, second.done.length);
  assert.equal(final.status, "completed");
  assert.deepEqual(final.data.counts, expected, "as if nothing had happened");
  console.log("Nothing that was acknowledged was worked on again, and the counts are right.");
} finally {
  await rm(root, { recursive: true, force: true });
}
