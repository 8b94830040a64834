import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FileStore } from "waymark/stores/file";
import { bundle, removeBundle } from "./bundle.js";
import { below, seeded, seedOfRun } from "./random.js";
import { type Moment, runAndKill } from "./run-and-kill.js";

/** `npm run torture` kills more. */
const KILLS = process.env.MODE === "torture" ? 10_000 : 200;
/** How many runs are worked on at once. */
const LANES = 2;

let built: Awaited<ReturnType<typeof bundle>>;

beforeAll(async () => {
  built = await bundle("run");
});

afterAll(() => removeBundle(built));

/** The moment at which a process is killed: for most in the middle of their work, for some while they start. */
function moment(random: () => number): Moment {
  if (random() < 0.9) return { lines: 1 + below(random, 60), pause: below(random, 3) };
  return { time: below(random, 150) };
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
      const args = [built.script, root, runId, durability, "600"];
      const { said } = await runAndKill(args, moment(random));
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
