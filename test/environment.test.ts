import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { environment } from "waymark/environment";
import { newFolder } from "./stores/folders.js";

describe("environment", () => {
  const git = (cwd: string, ...args: string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], {
      cwd,
    }).toString();

  test("names the commit, and whether something was changed since", () => {
    const cwd = newFolder();
    writeFileSync(join(cwd, "package.json"), '{ "name": "shop", "version": "1.2.3" }');
    git(cwd, "init", "-q");
    git(cwd, "add", ".");
    git(cwd, "commit", "-qm", "first");
    const commit = git(cwd, "rev-parse", "HEAD").trim();
    expect(environment({ cwd })).toEqual({
      commit,
      dirty: false,
      host: hostname(),
      pid: process.pid,
      node: process.version,
      waymark: expect.stringMatching(/^\d+\.\d+\.\d+/),
      package: "shop@1.2.3",
    });
    writeFileSync(join(cwd, "new.txt"), "");
    expect(environment({ cwd }).dirty).toBe(true);
  });

  test("leaves out what it can't find", () => {
    const found = environment({ cwd: newFolder() });
    expect(found).not.toHaveProperty("commit");
    expect(found).not.toHaveProperty("package");
    expect(() => environment({ cwd: "" })).toThrow("environment.cwd must be a non-empty string");
  });
});
