import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";

/** Every `ts` block of the README, the guide and the TSDoc comments, as a file of its own. */
interface Example {
  readonly name: string;
  readonly code: string;
  readonly file: string;
}

const root = join(import.meta.dirname, "../..");
// Inside the project, so that an example resolves what a user's file would.
const folder = join(root, "node_modules/.waymark-examples");

function filesBelow(path: string, ending: string): string[] {
  return readdirSync(join(root, path), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(path, name));
}

function blocks(path: string): { code: string; line: number }[] {
  const text = readFileSync(join(root, path), "utf8");
  const fence = path.endsWith(".md") ? /^```ts\n(.*?)^```$/gms : /^ *\* ```ts\n(.*?)^ *\* ```$/gms;
  return [...text.matchAll(fence)].map((match) => ({
    code: (match[1] ?? "").replace(path.endsWith(".md") ? /$^/ : /^ *\* ?/gm, ""),
    line: text.slice(0, match.index).split("\n").length,
  }));
}

const guide = readdirSync(root).includes("guide") ? filesBelow("guide", ".md") : [];
const examples: Example[] = ["README.md", ...guide, ...filesBelow("src", ".ts")].flatMap((path) =>
  blocks(path).map(({ code, line }) => ({
    name: `${path}:${line}`,
    code,
    file: join(folder, `${path.replace(/\W/g, "_")}_${line}.ts`),
  })),
);

/** What an example says it prints: the comment behind each `console.log`. */
function expectedOutput(code: string): string[] {
  return [...code.matchAll(/console\.log\(.*\);? \/\/ (.*)$/gm)].map((match) => match[1] ?? "");
}

beforeAll(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const { file, code } of examples) writeFileSync(file, `${code}\nexport {};\n`);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("examples in the documentation", () => {
  test("compile", () => {
    const { config } = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
    const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, root);
    const files = examples.map(({ file }) => file);
    const program = ts.createProgram(files, { ...options, noUnusedLocals: false, rootDir: root });
    const problems = ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
      const name = examples.find((example) => example.file === file?.fileName)?.name;
      return `${name ?? file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
    });
    expect(problems).toEqual([]);
  });

  test.each(examples)("$name prints what it says", async ({ file, code }) => {
    const printed: string[] = [];
    const log = vi.spyOn(console, "log").mockImplementation((...values) => {
      printed.push(values.map(String).join(" "));
    });
    try {
      await import(/* @vite-ignore */ file);
    } finally {
      log.mockRestore();
    }
    expect(printed).toEqual(expectedOutput(code));
  });
});
