import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundle, removeBundle } from "../crash/bundle.js";

let built: Awaited<ReturnType<typeof bundle>>;

beforeAll(async () => {
  built = await bundle("frozen-error", join(import.meta.dirname, "fixtures"));
});

afterAll(() => removeBundle(built));

test("concurrent calls of once share one action even if nobody may change Error", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [built.script]);
  expect(stdout.trim()).toBe("42 of 1 call");
});
