import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FileStore } from "waymark/stores/file";
import { bundle, removeBundle } from "../crash/bundle.js";
import { Counts } from "./nodes.js";

let built: Awaited<ReturnType<typeof bundle>>;

beforeAll(async () => {
  built = await bundle("flow", join(import.meta.dirname, "fixtures"));
});

afterAll(() => removeBundle(built));

/** Starts a process on a run and kills it when it has said so many lines; gives all it has said. */
function runAndKill(args: readonly string[], lines: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [built.script, ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const said: string[] = [];
    createInterface(child.stdout).on("line", (line) => {
      if (said.push(line) === lines) child.kill("SIGKILL");
    });
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === null || code === 0) resolve(said);
      else reject(new Error(`the process ended with ${code}: ${said.join("; ")}`));
    });
  });
}

const expected = [
  ...["c0", "c1", "c2", "c3", "c4"],
  ...["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8"],
  ...["r0", "r1", "r2", "r3", "z", "x", "y"],
];

test.each([1, 3, 5])(
  "a run killed after every %i effects has the same end, and repeats nothing that was saved",
  {
    timeout: 120_000,
  },
  async (lines) => {
    const root = join(built.folder, `every-${lines}`);
    const counts = new Counts();
    const saved = new Map<string, number>();
    for (let number = 0; ; number++) {
      // A process may be killed before anything is saved, so each is let live a little longer.
      const said = await runAndKill([root, "r"], lines + Math.floor(number / 4));
      const done = said.find((line) => line.startsWith("done "));
      for (const effect of said) if (!effect.startsWith("done ")) counts.add(effect);
      for (const [effect, count] of saved)
        expect([effect, counts.of(effect)]).toEqual([effect, count]);
      if (done !== undefined) {
        expect(done).toBe(`done ${expected.map((name) => `<${name}>`).join("")}`);
        break;
      }
      const newest = await new FileStore({ root }).load("r").catch(() => undefined);
      const text = JSON.stringify(newest?.toJSON() ?? {});
      for (const [, effect = ""] of text.matchAll(/<(\w+)>/g)) saved.set(effect, counts.of(effect));
    }
    expect(Object.keys(counts.all).sort()).toEqual([...expected].sort());
  },
);
