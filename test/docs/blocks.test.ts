import { spawnSync } from "node:child_process";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { blocksOf, pages } from "./pages.js";

/** `ts` and `mermaid` blocks are looked at by the test of examples, `text` is what a block before prints. */
const elsewhere = ["ts", "ts compile", "mermaid", "text", ""];

function problemOf(info: string, code: string): string | undefined {
  if (elsewhere.includes(info)) return undefined;
  if (info === "sh") {
    const { status, stderr } = spawnSync("sh", ["-n"], { input: code, encoding: "utf8" });
    return status === 0 ? undefined : stderr;
  }
  if (info !== "js") return `nobody looks at ${info || "this"}`;
  const { diagnostics = [] } = ts.transpileModule(code, {
    reportDiagnostics: true,
    compilerOptions: {
      allowJs: true,
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ES2022,
    },
    fileName: "block.mjs",
  });
  const [first] = diagnostics;
  return first && ts.flattenDiagnosticMessageText(first.messageText, "\n");
}

describe("blocks in other languages", () => {
  test.each(pages())("of %s can be read by their language", (path) => {
    const problems = blocksOf(path).flatMap(({ info, code, line }) => {
      const problem = problemOf(info, code);
      return problem === undefined ? [] : `${path}:${line}: ${problem}`;
    });
    expect(problems).toEqual([]);
  });

  test("that are wrong are found", () => {
    expect(problemOf("js", "const a = ;")).toBe("Expression expected.");
    expect(problemOf("sh", "if true; then")).toContain("end of file");
    expect(problemOf("python", "pass")).toBe("nobody looks at python");
  });
});
