import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FileStore } from "waymark/stores/file";
import { SqliteStore } from "waymark/stores/sqlite";
import { collectGarbage } from "../graphs.js";
import { bundle, removeBundle } from "./bundle.js";
import { below, seeded, seedOfRun } from "./random.js";
import { type Moment, runAndKill } from "./run-and-kill.js";

/** `npm run torture` kills more. */
const KILLS = process.env.MODE === "torture" ? 10_000 : 200;
/** How many processes work at once. */
const LANES = 2;

const stores = {
  file: (root: string) => new FileStore({ root }),
  sqlite: (root: string) => new SqliteStore({ path: join(root, "waymark.db") }),
};
type Kind = keyof typeof stores;

let built: Awaited<ReturnType<typeof bundle>>;

beforeAll(async () => {
  built = await bundle("run", undefined, ["libsql"]);
});

afterAll(() => removeBundle(built));

/** The moment at which a process is killed: for most in the middle of their work, for some while they start. */
function moment(random: () => number, runs: number): Moment {
  if (random() < 0.9) return { lines: 1 + below(random, 60 * runs), pause: below(random, 3) };
  return { time: below(random, 150) };
}

/** Kills a process over and over. What was acknowledged must be found again, and must not be done again. */
async function lane(kind: Kind, lane: number, kills: number, random: () => number) {
  let saves = 0;
  for (let killed = 0, group = 0; killed < kills; group++) {
    // Beside another process that writes to the same place, or alone.
    const root = join(built.folder, kind, random() < 0.5 ? "shared" : `lane-${lane}`);
    mkdirSync(root, { recursive: true });
    const durability = random() < 0.3 ? "os" : "fsync";
    // Of several runs a database writes some in one transaction.
    const runs = random() < 0.5 ? 1 : 5;
    const runIds = Array.from({ length: runs }, (_, run) => `run-${lane}-${group}-${run}`);
    const args = [built.script, kind, root, durability, "600", ...runIds];
    const acknowledged = new Map<string, number>();
    for (let alive = true; alive && killed < kills; killed++) {
      const { said } = await runAndKill(args, moment(random, runs));
      for (const line of said) {
        const [word, runId = "", number] = line.split(" ");
        const known = acknowledged.get(runId) ?? -1;
        if (word === "done") alive = false;
        else if (word === "saved") acknowledged.set(runId, Math.max(known, Number(number)));
        else if (word === "loaded" || word === "start") {
          const message = `${line} after step ${known} was saved`;
          expect(Number(number), message).toBeGreaterThanOrEqual(known);
        } else expect.unreachable(line);
      }
      saves += said.filter((line) => line.startsWith("saved")).length;
      const store = stores[kind](root);
      for (const [runId, known] of acknowledged) {
        const state = await store.load<{ n: number }>(runId);
        // The last save may have been written and not yet acknowledged.
        expect([known, known + 1], runId).toContain(state.step);
        expect(state.data.n).toBe(state.status === "completed" ? state.step - 1 : state.step);
      }
      await store.close();
    }
  }
  return saves;
}

test.each<Kind>(["file", "sqlite"])(
  "%s: every acknowledged checkpoint survives kill -9, and no acknowledged node runs twice",
  { timeout: KILLS * 1000 },
  async (kind) => {
    const seed = seedOfRun();
    console.log(`${KILLS} kills with SEED=${seed}`);
    const lanes = Array.from({ length: LANES }, (_, index) =>
      lane(kind, index, KILLS / LANES, seeded(seed + index)),
    );
    const saves = (await Promise.all(lanes)).reduce((sum, count) => sum + count);
    expect(saves).toBeGreaterThan(KILLS);
    // libsql closes a database only once its statements are collected; until then its write-ahead log stays.
    await collectGarbage();
    const folder = join(built.folder, kind);
    for (const name of readdirSync(folder)) {
      const store = stores[kind](join(folder, name));
      for await (const finding of store.verify()) expect(finding.problem).toBe("leftover");
      await store.close();
    }
    const left = readdirSync(folder, { recursive: true, encoding: "utf8" });
    // One for each run that was killed last, at the most: the next to open it sweeps.
    const runs = left.filter((path) => /run-[\d-]+$/.test(path)).length;
    expect(left.filter((path) => path.endsWith(".tmp")).length).toBeLessThanOrEqual(runs);
    expect(left.filter((path) => /quarantine|-wal|-shm|-journal/.test(path))).toEqual([]);
  },
);
