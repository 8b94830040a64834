import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Callable, callables, entryFiles, events } from "./api.js";
import { blocksOf, pages, root } from "./pages.js";

/**
 * Every `ts` block of the README, the guide and the TSDoc comments, as a file of its own. All are
 * compiled and run; one marked `ts compile` is only compiled.
 */
interface Example {
  readonly name: string;
  readonly code: string;
  readonly file: string;
  readonly isRun: boolean;
  /** What `// the block below` stands for. */
  readonly below: string;
}

// Inside the project, so that an example resolves what a user's file would; two runs do not share it.
const folder = join(root, `node_modules/.waymark-examples-${process.pid}`);

function example(path: string, line: number, code: string, isRun = true, below = ""): Example {
  const file = join(folder, `${path.replace(/\W/g, "_")}_${line}.ts`);
  return { name: `${path}:${line}`, code, file, isRun, below };
}

function inPage(path: string): Example[] {
  return blocksOf(path).flatMap(({ info, code, line }, index, all) => {
    const [language, mark] = info.split(" ");
    if (language !== "ts") return [];
    return example(path, line, code, mark !== "compile", all[index + 1]?.code);
  });
}

function inSource(path: string): Example[] {
  const text = readFileSync(join(root, path), "utf8");
  return [...text.matchAll(/^ *\* ```ts( compile)?\n(.*?)^ *\* ```$/gms)].map((match) => {
    const line = text.slice(0, match.index).split("\n").length;
    const code = (match[2] ?? "").replace(/^ *\* ?/gm, "");
    return example(path, line, code, match[1] === undefined);
  });
}

const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => `src/${name.replaceAll("\\", "/")}`);
const examples = [...pages().flatMap(inPage), ...sources.flatMap(inSource)];

/** What an example says it prints: the comment behind each `console.log`, line by line. */
function expectedOutput({ code, below }: Example): string[] {
  return [...code.matchAll(/console\.log\(.*\)[;,)]* \/\/ (.*)$/gm)].flatMap(([, said = ""]) =>
    said === "the block below" ? below.trimEnd().split("\n") : said,
  );
}

/** Litestream's package has binaries for some platforms only. */
const platform = `${process.platform}-${process.arch}`;
const hasLitestream = existsSync(join(root, `node_modules/@flydotio/litestream-${platform}`));

let program: ts.Program;

beforeAll(() => {
  mkdirSync(folder, { recursive: true });
  for (const { file, code } of examples) writeFileSync(file, `${code}\nexport {};\n`);
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, root);
  const files = [...examples.map(({ file }) => file), ...entryFiles];
  program = ts.createProgram(files, { ...options, noUnusedLocals: false, rootDir: root });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("examples in the documentation", () => {
  test("compile", () => {
    const problems = ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
      const name = examples.find((example) => example.file === file?.fileName)?.name;
      return `${name ?? file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
    });
    expect(problems).toEqual([]);
  });

  test.for(examples.filter(({ isRun }) => isRun))(
    "$name prints what it says",
    async (example, { skip }) => {
      skip(example.code.includes("litestream") && !hasLitestream, `no Litestream on ${platform}`);
      const printed: string[] = [];
      const log = vi.spyOn(console, "log").mockImplementation((...values) => {
        printed.push(...values.map(String).join(" ").trimEnd().split("\n"));
      });
      try {
        await import(/* @vite-ignore */ example.file);
      } finally {
        log.mockRestore();
      }
      expect(printed).toEqual(expectedOutput(example));
    },
  );
});

describe("public functions and methods", () => {
  let all: readonly Callable[];
  beforeAll(() => {
    all = callables(program);
  });

  test("are each used in an example", () => {
    const code = examples.map((example) => example.code).join("\n");
    const isUsed = (name: string): boolean => new RegExp(`\\b${name}\\b[(<]`).test(code);
    // Errors are thrown by waymark, not constructed by its users.
    const names = all.map(({ name }) => name).filter((name) => !/Error#constructor$/.test(name));
    const unused = names.filter((name) => {
      const [owner = "", member] = name.split("#");
      return member === "constructor" ? !isUsed(`new ${owner}`) : !isUsed(member ?? owner);
    });
    expect(unused).toEqual([]);
  });

  test("say what they throw", () => {
    const load = all.find(({ name }) => name === "MemoryStore#load");
    expect(load?.throws).toContain("CheckpointNotFoundError");
    const unsaid = all.flatMap(({ name, throws, says }) =>
      throws.filter((error) => !says.includes(error)).map((error) => `${name}: ${error}`),
    );
    expect(unsaid).toEqual([]);
  });
});

test("the reference lists every event with its data", () => {
  const text = readFileSync(join(root, "guide/reference.md"), "utf8");
  const [, table = ""] = /^\| event \| data \|\n(.*?)\n\n/ms.exec(text) ?? [];
  const listed = [...table.matchAll(/^\| (`[a-z.` ]+`) \| `([^`]+)` \|$/gm)].flatMap(
    ([, names = "", data = ""]) =>
      [...names.matchAll(/[a-z.]+/g)].map(([name]) => [name, data.split(", ").sort()] as const),
  );
  expect(new Map(listed)).toEqual(events(program));
});

describe("diagrams in the guide", () => {
  test.each(pages().filter((path) => path.startsWith("guide/")))(
    "%s shows only what toMermaid gave",
    (path) => {
      const blocks = blocksOf(path);
      const drawn = blocks.filter(({ info }) => info === "mermaid");
      // The example above a diagram prints it, so the test above has compared the two.
      const printed = blocks.filter(
        ({ info }, index) =>
          info === "mermaid" &&
          /toMermaid\(.*\)\); \/\/ the block below$/m.test(blocks[index - 1]?.code ?? ""),
      );
      expect(printed).toEqual(drawn);
    },
  );
});
