import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { JournalStore } from "waymark/stores/journal";
import { bundle, removeBundle } from "./bundle.js";
import { below, seeded, seedOfRun } from "./random.js";
import { runAndKill } from "./run-and-kill.js";

const RUNS = 100;
const KILLS = process.env.MODE === "torture" ? 500 : 12;
let built: Awaited<ReturnType<typeof bundle>>;

beforeAll(async () => {
  built = await bundle("journal");
});

afterAll(() => removeBundle(built));

test("every acknowledged save of a hundred runs at once survives kill -9", {
  timeout: 120_000 + KILLS * 3000,
}, async () => {
  const seed = seedOfRun();
  console.log(`${KILLS} kills with SEED=${seed}`);
  const random = seeded(seed);
  const root = join(built.folder, "data");
  const acknowledged = new Map<string, number>();
  let saves = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const args = [built.script, root, String(RUNS), "1000000", "100000"];
    const { said, killed } = await runAndKill(args, { lines: RUNS + 1 + below(random, 2500) });
    expect(killed).toBe(true);
    for (const line of said) {
      const [word, runId = "", number] = line.split(" ");
      const known = acknowledged.get(runId) ?? 0;
      if (word === "saved") {
        saves++;
        acknowledged.set(runId, Number(number));
      } else {
        expect([known, known + 1], `kill ${kill}: ${line}`).toContain(Number(number));
      }
    }
    const store = new JournalStore({ root });
    expect((await store.list()).length).toBeGreaterThanOrEqual(acknowledged.size);
    for (const [runId, known] of acknowledged) {
      const { n, list } = (await store.load<{ n: number; list: string[] }>(runId)).data;
      expect([known, known + 1], `kill ${kill}: ${runId}`).toContain(n);
      expect([list.length, list.at(-1)]).toEqual([Math.min(n, 51), `item ${n}`]);
      acknowledged.set(runId, n);
    }
    await store.close();
  }
  expect(saves).toBeGreaterThan(KILLS * 100);
});
