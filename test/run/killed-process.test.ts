import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunRecovery } from "../../src/recovery/recover-runs.js";
import { bundle, removeBundle } from "../crash/bundle.js";
import { below, seeded, seedOfRun } from "../crash/random.js";

let built: Awaited<ReturnType<typeof bundle>>;
let worlds = 0;

beforeAll(async () => {
  built = await bundle("effects", join(import.meta.dirname, "fixtures"));
});

afterAll(() => removeBundle(built));

/** A disk on which processes of `fixtures/effects.ts` work, one after the other. */
class World {
  readonly root = join(built.folder, `world-${++worlds}`);
  readonly effects = `${this.root}.log`;

  /**
   * Starts a process and gives all it said. It waits where it says this, to be killed when so many of its
   * runs have come there; or it is killed when it has said so many lines.
   */
  run(killAt: string | number, verb = "run", runs = 1): Promise<string[]> {
    const stopAt = typeof killAt === "string" ? killAt : "";
    const args = [built.script, this.root, this.effects, stopAt, verb, "5"];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const said: string[] = [];
    createInterface(child.stdout).on("line", (line) => {
      said.push(line);
      const isThere = said.filter((one) => one === killAt).length === runs;
      if (isThere || said.length === killAt) child.kill("SIGKILL");
    });
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code) => {
        if (code === null || code === 0) resolve(said);
        else reject(new Error(`the process ended with ${code}: ${said.join("; ")}`));
      });
    });
  }

  get log(): string[] {
    return existsSync(this.effects) ? readFileSync(this.effects, "utf8").trim().split("\n") : [];
  }

  /** How often each effect was done, of the run `r`. */
  get done(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const line of this.log) {
      const [, name] = /^r did (.*)$/.exec(line) ?? [];
      if (name !== undefined) counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  }
}

const once = {
  charge: 1,
  mail: 1,
  "part 0": 1,
  "part 1": 1,
  "part 2": 1,
  label: 1,
  call: 1,
  "thank for 5": 1,
};

/** Lets new processes continue until the run is done. */
async function finish(world: World): Promise<void> {
  for (let starts = 0; starts < 3; starts++) {
    const said = await world.run("");
    if (said.at(-1)?.startsWith("completed")) {
      const data = { parts: 3, paid: "charge done", attempts: 3 };
      expect(said.at(-1)).toBe(`completed ${JSON.stringify(data)}`);
      return;
    }
    expect(said.at(-1)).toMatch(/^paused/);
  }
  expect.unreachable("the run did not come to its end");
}

describe("a process killed", () => {
  test("nowhere has each effect once, across the pause", async () => {
    const world = new World();
    await finish(world);
    expect(world.done).toEqual(once);
  });

  test.each([
    ["before anything", "before charge"],
    ["after a once, inside the node", "saved charge"],
    ["between two onces", "before mail"],
    ["after the last once of a node", "saved mail"],
    ["at the first milestone", "saved part 0"],
    ["after a milestone", "before part 1"],
    ["at the last milestone", "saved part 2"],
    ["after a once, before the retries", "saved label"],
    ["before a pause", "saved call"],
    ["after a pause was answered", "before thank for 5"],
    ["at its very end", "saved thank for 5"],
  ])("%s repeats nothing", async (_where, point) => {
    const world = new World();
    const said = await world.run(point);
    if (!said.includes(point)) await world.run(point);
    await finish(world);
    expect(world.done).toEqual(once);
  });

  test.each([
    ["in the middle of a once", "did charge", "charge"],
    ["in the middle of a retried once", "did label", "label"],
  ])("%s, before its result is saved, repeats only that", async (_where, point, effect) => {
    const world = new World();
    await world.run(point);
    await finish(world);
    expect(world.done).toEqual({ ...once, [effect]: 2 });
  });

  test("at random points never repeats what was saved", async () => {
    const seed = seedOfRun();
    console.log(`SEED=${seed}`);
    const random = seeded(seed);
    for (let round = 0; round < 3; round++) {
      const world = new World();
      let kills = 0;
      for (let said: string[] = []; !said.at(-1)?.startsWith("completed"); ) {
        said = await world.run(1 + below(random, 12));
        if (++kills > 60) expect.unreachable(`no end in sight, SEED=${seed}`);
      }
      const saved = new Set<string>();
      for (const line of world.log) {
        const [, word, name = ""] = /^r (did|saved) (.*)$/.exec(line) ?? [];
        if (word === "saved") saved.add(name);
        else expect(saved.has(name), `${line} after it was saved, SEED=${seed}`).toBe(false);
      }
      expect(Object.keys(world.done).sort()).toEqual(Object.keys(once).sort());
    }
  });
});

describe("recoverRuns in a new process", () => {
  const reportsOf = (said: readonly string[]): RunRecovery[] =>
    said
      .filter((line) => line.startsWith("report "))
      .map((line) => JSON.parse(line.slice("report ".length)) as RunRecovery);

  test("resumes a killed run at once, though its claim was never released", async () => {
    const world = new World();
    await world.run("saved part 1");
    expect(reportsOf(await world.run("", "recover"))).toEqual([
      { runId: "r", graph: "order", attempts: 1, fellBack: false, outcome: "paused" },
    ]);
    expect(reportsOf(await world.run("", "recover"))).toEqual([]);
    await finish(world);
    expect(world.done).toEqual(once);
  });

  test("leaves alone a run of a living process", async () => {
    const world = new World();
    const args = [built.script, world.root, world.effects, "saved charge"];
    const living = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface(living.stdout);
    await new Promise<void>((resolve) => {
      lines.on("line", (line) => line === "saved charge" && resolve());
    });
    expect(reportsOf(await world.run("", "recover"))).toMatchObject([
      { outcome: "skipped", reason: "a live process is working on it" },
    ]);
    living.kill("SIGKILL");
    await new Promise((resolve) => living.on("close", resolve));
    expect(reportsOf(await world.run("", "recover"))).toMatchObject([{ outcome: "paused" }]);
    expect(world.done.charge).toBe(1);
  });

  test("counts its attempts even when killed, and gives up after three", async () => {
    const world = new World();
    await world.run("before charge");
    for (let attempt = 0; attempt < 3; attempt++) await world.run("before charge", "recover");
    expect(reportsOf(await world.run("", "recover"))).toMatchObject([
      { outcome: "gave-up", attempts: 3 },
    ]);
    expect(world.done).toEqual({});
  });

  test("in two processes at once recovers each run once and does nothing twice", async () => {
    const world = new World();
    await world.run("saved charge", "start-many", 4);
    const both = await Promise.all([world.run("", "recover"), world.run("", "recover")]);
    const reports = both.flatMap(reportsOf);
    const recovered = reports.filter(({ outcome }) => outcome !== "skipped");
    expect(recovered.map(({ runId }) => runId).sort()).toEqual(["r1", "r2", "r3", "r4"]);
    const saved = new Set<string>();
    for (const line of world.log) {
      const [, runId, word, name] = /^(r\d) (did|saved) (.*)$/.exec(line) ?? [];
      const key = `${runId} ${name}`;
      if (word === "saved") saved.add(key);
      else expect(saved.has(key), line).toBe(false);
    }
    for (const { runId } of recovered) expect(saved).toContain(`${runId} call`);
  });
});
