import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./pages.js";

test("the cookbook shows the recipes as they are in examples/cookbook", () => {
  const script = join(root, "scripts/cookbook.mjs");
  const recipes = execFileSync(process.execPath, [script, "--print"], { encoding: "utf8" });
  const page = readFileSync(join(root, "guide/cookbook.md"), "utf8");
  expect(page.startsWith(recipes.trimEnd()), "npm run cookbook writes it").toBe(true);
});
