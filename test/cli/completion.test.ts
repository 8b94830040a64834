import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { commandNames } from "../../src/cli/commands/index.js";
import { articleRun, json, newFolder, project, waymark } from "./harness.js";

describe("completion", () => {
  test.each(["bash", "zsh", "fish"])("has a script for %s", async (shell) => {
    const { code, out } = await waymark(newFolder(), "completion", shell);
    expect(code).toBe(0);
    for (const name of commandNames) expect(out).toContain(name);
    expect(out).toContain("max-age");
    expect(await json(newFolder(), "completion", shell)).toEqual({ shell, script: out });
    const parser = shell === "bash" ? "bash" : undefined;
    if (parser !== undefined) execFileSync(parser, ["-n"], { input: out });
  });

  test("completes in bash", async () => {
    const { out } = await waymark(newFolder(), "completion", "bash");
    const folder = newFolder();
    const ids = ["monday", "tuesday", "$(id>here)", "`id>here`", "it's", "*"];
    writeFileSync(join(folder, "runs"), `${ids.join("\n")}\n`);
    const complete = (...words: string[]): string[] => {
      const quoted = words.map((word) => `'${word}'`).join(" ");
      const script = `${out}
waymark() { cat runs; }
COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _waymark; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const settings = { cwd: folder, encoding: "utf8" } as const;
      return execFileSync("bash", ["-c", script], settings).trim().split("\n");
    };
    expect(complete("waymark", "li")).toEqual(["list"]);
    expect(complete("waymark", "prune", "--max")).toEqual(["--max-age", "--max-runs"]);
    expect(complete("waymark", "show", "m")).toEqual(["monday"]);
    // An id is data, whatever is in it: no part of it is run, or stands for files.
    const all = ["monday", "tuesday", "\\$\\(id\\>here\\)"];
    expect(complete("waymark", "show", "")).toEqual([...all, "\\`id\\>here\\`", "it\\'s", "\\*"]);
    expect(complete("waymark", "show", "\\$")).toEqual(all.slice(2));
    expect(readdirSync(folder)).toEqual(["runs"]);
    expect(complete("waymark", "completion", "z")).toEqual(["zsh"]);
  });

  test("runs no code of the current folder, and uses the store of a JSON config", async () => {
    const folder = project();
    await articleRun(folder, "monday");
    for (const name of readdirSync(folder)) {
      if (name.startsWith("waymark.config.")) rmSync(join(folder, name));
    }
    writeFileSync(
      join(folder, "waymark.config.mjs"),
      `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(join(folder, "executed"))}, "");\nexport default {};\n`,
    );
    expect((await waymark(folder, "completion", "--runs")).out).toBe("monday\n");
    expect(existsSync(join(folder, "executed"))).toBe(false);
    rmSync(join(folder, "waymark.config.mjs"));
    writeFileSync(join(folder, "waymark.config.json"), '{ "store": "file:elsewhere" }');
    expect((await waymark(folder, "completion", "--runs")).out.trim()).toBe("");
  });

  test("lists runs for the scripts, and refuses other shells", async () => {
    const folder = project();
    for (const id of ["monday", "a b", "-v"]) await articleRun(folder, id);
    expect((await waymark(folder, "completion", "--runs")).out).toBe("monday\n");
    expect(await json(folder, "completion", "--runs")).toEqual(["-v", "a b", "monday"]);
    for (const args of [["tcsh"], []]) {
      const { code, err } = await waymark(folder, "completion", ...args);
      expect(code).toBe(2);
      expect(err).toContain("the shell must be bash, zsh or fish; got");
    }
  });
});
