import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { commandNames, loadCommands } from "../../src/cli/commands/index.js";
import { commandLinePage } from "../../src/cli/guide.js";
import { newFolder, waymark } from "./harness.js";

const root = join(import.meta.dirname, "../..");

describe("help", () => {
  test("lists all commands and the exit codes", async () => {
    for (const args of [["--help"], ["help"], []]) {
      const { code, out } = await waymark(newFolder(), ...args);
      expect(code).toBe(0);
      for (const name of commandNames) expect(out).toMatch(new RegExp(`^  ${name}\\b`, "m"));
      expect(out).toMatch(/Exit codes:\n {2}0 +success\n/);
      expect(out).toMatch(/\n {2}130 +interrupted/);
    }
  });

  test.each(commandNames)("%s has an example", async (name) => {
    const { code, out } = await waymark(newFolder(), name, "--help");
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`^Usage: waymark ${name}`));
    expect(out).toMatch(/Examples?:\n {2}\$ .*waymark/);
    expect(out).toContain("--json");
    expect((await waymark(newFolder(), "help", name)).out).toBe(out);
  });

  test("the version is that of the package", async () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    expect((await waymark(newFolder(), "--version")).out).toBe(`${version}\n`);
  });

  test("a misspelt command or option is reported in one line", async () => {
    const wrong: readonly (readonly [string[], RegExp])[] = [
      [["lst"], /unknown command 'lst' .*[Dd]id you mean list\?.*\(try: waymark --help\)/],
      [["--json"], /there is no such command, or none was given \(try: waymark --help\)/],
      [["help", "nope"], /there is no such command, or none was given \(try: waymark --help\)/],
      [["list", "--nope"], /unknown option '--nope' \(try: waymark list --help\)/],
      [["list", "--status", "nope"], /argument 'nope' is invalid.*Allowed choices are/],
      [["list", "--limit", "0"], /--limit must be an integer ≥ 1; got "0"/],
      [["prune", "--max-runs", "-1"], /--max-runs must be|argument missing/],
      [["show"], /missing required argument 'run'/],
      [["show", "a", "b"], /too many arguments/],
    ];
    for (const [args, message] of wrong) {
      const { code, out, err } = await waymark(newFolder(), ...args);
      expect(err).toMatch(message);
      expect(err.trimEnd()).not.toContain("\n");
      expect(out).toBe("");
      expect(code).toBe(2);
    }
  });
});

test("the page of the guide is current; npm run cli:guide writes it", async () => {
  const page = commandLinePage(await loadCommands(commandNames));
  expect(readFileSync(join(root, "guide/command-line.md"), "utf8")).toBe(page);
});
