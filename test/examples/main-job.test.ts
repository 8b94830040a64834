import { beforeAll, expect, test } from "vitest";
import { command, outputOf } from "./process.js";

/** Runs a command in a terminal; other systems have another one of that name, or none. */
const version = await outputOf(["script", "--version"]).catch(() => "");
const hasScript = version.includes("util-linux");

const CLEAR = "\r\u001b[2K";

/** Without what differs from run to run. */
const plain = (text: string): string =>
  text
    .replace(/pid \d+/g, "pid")
    .replace(/job-\w+/g, "job-…")
    .replace(/\d+\.\d s/g, "0.0 s");

/** What is left on a terminal: of each line what was written since it was cleared. */
function screen(written: string): string {
  const lines = written.replaceAll("\r\n", "\n").split("\n");
  return lines.map((line) => line.split(CLEAR).at(-1)).join("\n");
}

let output = "";
beforeAll(async () => {
  output = await outputOf(command("main-job"));
});

test("npm start: a killed process's run is finished by a second one", () => {
  expect(output).toContain("x review      running ... killed with SIGKILL");
  expect(output).toContain("- draft       skipped, it was saved");
  expect(output).toContain("+ review      done, saved as checkpoint_0006.json");
  expect(output.match(/^ {2}yes/gm)).toHaveLength(4);
  expect(output).not.toContain("\u001b");
});

test.runIf(hasScript)("npm start on a terminal: a bar below, and the same lines", async () => {
  const example = command("main-job").map((part) => `'${part}'`);
  const shell = `stty cols 100 && ${example.join(" ")}`;
  const options = ["--quiet", "--return", "--command", shell];
  const written = await outputOf(["script", ...options, "/dev/null"]);
  // Each time the line is cleared, the bar or a line of text is written.
  const bars = written.split(CLEAR).filter((part) => /^[█░]{20} {2}article {2}\w+ /.test(part));
  expect(bars[0]).toMatch(/^░{20} {2}article {2}research {2}0\/6 {2}\d+\.\d s$/);
  // One for each node, or fewer on a machine that is very busy.
  expect(bars.length).toBeGreaterThan(2);
  const end = "✓  article  completed  6/6  0.0 s\n";
  const shown = plain(screen(written));
  expect(shown).toContain(end);
  expect(shown.replace(end, "")).toBe(plain(output));
});
