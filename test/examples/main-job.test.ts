import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

test("npm start: a killed process's run is finished by a second one", () => {
  const tsx = join(root, "node_modules/tsx/dist/cli.mjs");
  const script = join(root, "examples/main-job/main.ts");
  // Ends with an error if it did not hold.
  const output = execFileSync(process.execPath, [tsx, "--tsconfig", "tsconfig.json", script], {
    cwd: root,
    encoding: "utf8",
  });
  expect(output).toContain("x review      running ... killed with SIGKILL");
  expect(output).toContain("- draft       skipped, it was saved");
  expect(output).toContain("+ review      done, saved as checkpoint_0005.json");
  expect(output.match(/^ {2}yes/gm)).toHaveLength(4);
});
