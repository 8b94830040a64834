import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FileStore } from "waymark/stores/file";
import { bundle, removeBundle } from "./bundle.js";
import { below, seeded, seedOfRun } from "./random.js";

/** `npm run torture` kills more. */
const KILLS = process.env.MODE === "torture" ? 10_000 : 200;
/** How many runs are worked on at once. */
const LANES = 2;

let built: Awaited<ReturnType<typeof bundle>>;

beforeAll(async () => {
  built = await bundle("run");
});

afterAll(() => removeBundle(built));

/** Starts a process on a run and kills it at a moment that the random numbers say; gives all it has said. */
function runAndKill(args: readonly string[], random: () => number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [built.script, ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const kill = (): unknown => child.kill("SIGKILL");
    const said: string[] = [];
    // Most die in the middle of their work, some while they start.
    const lines = random() < 0.9 ? 1 + below(random, 60) : Number.POSITIVE_INFINITY;
    const pause = below(random, 3);
    const timer = lines === Number.POSITIVE_INFINITY && setTimeout(kill, below(random, 150));
    createInterface(child.stdout).on("line", (line) => {
      if (said.push(line) === lines) setTimeout(kill, pause);
    });
    child.on("error", reject);
    child.on("close", (code) => {
      if (timer !== false) clearTimeout(timer);
      if (code === null || code === 0) resolve(said);
      else reject(new Error(`the process ended with ${code}: ${said.join("; ")}`));
    });
  });
}

/** Kills a run over and over. What was acknowledged must be found again, and must not be done again. */
async function lane(lane: number, kills: number, random: () => number): Promise<number> {
  const root = join(built.folder, `lane-${lane}`);
  let saves = 0;
  for (let count = 0, run = 0; count < kills; run++) {
    const runId = `run-${run}`;
    const durability = random() < 0.3 ? "os" : "fsync";
    let acknowledged = -1;
    for (let alive = true; alive && count < kills; count++) {
      const said = await runAndKill([root, runId, durability, "600"], random);
      for (const line of said) {
        const [word, number] = line.split(" ");
        if (word === "done") alive = false;
        else if (word === "saved") acknowledged = Math.max(acknowledged, Number(number));
        else if (word === "loaded" || word === "start") {
          expect(
            Number(number),
            `${line} after step ${acknowledged} was saved`,
          ).toBeGreaterThanOrEqual(acknowledged);
        } else expect.unreachable(line);
      }
      saves += said.filter((line) => line.startsWith("saved")).length;
      if (acknowledged < 0) continue;
      const state = await new FileStore({ root }).load<{ n: number }>(runId);
      expect(state.step).toBeGreaterThanOrEqual(acknowledged);
      expect(state.data.n).toBe(state.status === "completed" ? state.step - 1 : state.step);
    }
  }
  return saves;
}

test("every acknowledged checkpoint survives kill -9, and no acknowledged node runs twice", {
  timeout: KILLS * 1000,
}, async () => {
  const seed = seedOfRun();
  console.log(`${KILLS} kills with SEED=${seed}`);
  const lanes = Array.from({ length: LANES }, (_, index) =>
    lane(index, KILLS / LANES, seeded(seed + index)),
  );
  const saves = (await Promise.all(lanes)).reduce((sum, count) => sum + count);
  expect(saves).toBeGreaterThan(KILLS);
  const left = readdirSync(built.folder, { recursive: true, encoding: "utf8" });
  // One for each run that was killed last, at the most: the next to open it sweeps.
  const runs = left.filter((path) => /run-\d+$/.test(path)).length;
  expect(left.filter((path) => path.endsWith(".tmp")).length).toBeLessThanOrEqual(runs);
  expect(left.filter((path) => path.includes("quarantine"))).toEqual([]);
});
