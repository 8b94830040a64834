import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundle, removeBundle } from "../crash/bundle.js";

const STEPS = 1_000_000;
const run = promisify(execFile);
let built: Awaited<ReturnType<typeof bundle>>;

beforeAll(async () => {
  built = await bundle("million", join(import.meta.dirname, "fixtures"));
});

afterAll(() => removeBundle(built));

test.each(["", "once"])(
  "the memory of a million steps with checkpoints is flat (%s)",
  async (how) => {
    const args = ["--expose-gc", built.script, String(STEPS), how];
    const { stdout } = await run(process.execPath, args);
    const [growth = "", steps = ""] = stdout.trim().split("\n");
    expect(steps).toBe(`${STEPS + 1} steps`);
    expect(growth).toMatch(/^-?\d+ KB$/);
    expect(Number.parseInt(growth, 10)).toBeLessThan(10 * 1024);
  },
);
