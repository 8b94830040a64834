import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FileStore } from "waymark/stores/file";
import { bundle, removeBundle } from "./bundle.js";
import { below, seeded, seedOfRun } from "./random.js";
import { runAndKill } from "./run-and-kill.js";

/** `npm run torture` kills more. */
const KILLS = process.env.MODE === "torture" ? 200 : 12;
const STEPS = 100;

let built: Awaited<ReturnType<typeof bundle>>;
beforeAll(async () => {
  built = await bundle("modes");
});
afterAll(() => removeBundle(built));

/** The numbers after a word, in their order. */
const numbers = (word: string, said: readonly string[]): number[] =>
  said.flatMap((line) => (line.startsWith(`${word} `) ? Number(line.split(" ")[1]) : []));

/** What every mode promises: one save at a time, in order, and an end that is saved before it is returned. */
function checkSaves(said: readonly string[]): void {
  const saves = said.filter((line) => /^(saving|saved) /.test(line));
  saves.forEach((line, at) => {
    const saving = saves[at - 1]?.replace("saving", "saved");
    if (at % 2 === 1) expect(line).toBe(saving);
    else expect(line).toMatch(/^saving /);
  });
  const steps = numbers("saved", said);
  expect(steps).toEqual([...steps].sort((a, b) => a - b));
  const last = said.at(-1) ?? "";
  if (last.startsWith("done")) expect(steps.at(-1)).toBe(STEPS + 1);
}

describe.each(["sync", "async"])('killed again and again in mode "%s"', (mode) => {
  test("a run loses no more than its mode allows, and ends as an undisturbed run does", async () => {
    const seed = seedOfRun();
    const random = seeded(seed);
    const root = join(built.folder, mode);
    let [acknowledged, kept, last, ahead] = [-1, new Set<number>(), "", 0];
    for (let kills = 0; !last.startsWith("done"); kills++) {
      const lines = kills < KILLS ? { lines: 1 + below(random, 60) } : {};
      const { said } = await runAndKill([built.script, root, "r", mode, `${STEPS}`], lines);
      const context = `SEED=${seed}, kill ${kills}`;
      checkSaves(said);
      // What was acknowledged is not done again, and what once has kept not either.
      const [first = acknowledged] = numbers("start", said);
      expect(first, context).toBeGreaterThanOrEqual(acknowledged);
      const again = numbers("pay", said).filter((step) => kept.has(step));
      expect(again, context).toEqual([]);
      let saved = acknowledged;
      for (const line of said) {
        const [word, step = 0] = [line.split(" ")[0], Number(line.split(" ")[1])];
        if (word === "saved") saved = step;
        if (word === "start" && saved < step) ahead++;
      }
      acknowledged = Math.max(acknowledged, ...numbers("saved", said));
      kept = new Set([...kept, ...numbers("kept", said)]);
      last = said.at(-1) ?? "";
      if (acknowledged < 0) continue;
      const state = await new FileStore({ root }).load("r");
      expect(state.step, context).toBeGreaterThanOrEqual(acknowledged);
    }
    expect(last).toBe(`done ${STEPS} ${STEPS / 5} completed`);
    // Only in mode "async" does a node begin before all that came before it is in the store.
    expect(ahead > 0).toBe(mode === "async");
  });
});

test('in mode "exit" a kill leaves nothing, and the end is saved', async () => {
  const random = seeded(seedOfRun());
  const root = join(built.folder, "exit");
  for (let kills = 0; kills < KILLS / 3; kills++) {
    const moment = { lines: 1 + below(random, 60) };
    const { said } = await runAndKill([built.script, root, "r", "exit", `${STEPS * 20}`], moment);
    expect(said.filter((line) => line.startsWith("sav"))).toEqual([]);
    expect(numbers("start", said)[0] ?? 0).toBe(0);
    expect(await new FileStore({ root }).list()).toEqual([]);
  }
  const { said } = await runAndKill([built.script, root, "r", "exit", `${STEPS}`], {});
  checkSaves(said);
  expect(numbers("saved", said)).toEqual([STEPS + 1]);
  expect(said.at(-1)).toBe(`done ${STEPS} ${STEPS / 5} completed`);
});
