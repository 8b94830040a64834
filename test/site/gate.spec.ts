import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const project = mkdtempSync(join(tmpdir(), "waymark-gate-"));

/** A small project with this one's settings, in which everything that may be missing is missing. */
const source = `
export function undocumented(): void {}

/** Has a sentence, and no example. */
export function bare(): void {}

/** Links to {@link nowhere}. */
export interface Lost {
  /** A sentence. */
  readonly n: number;
  undescribed: number;
}

/** Options of {@link shown}. */
export interface Options {
  /** A sentence. */
  readonly n: number;
}

/**
 * Has a sentence and an example.
 *
 * @example shown({ n: 1 })
 */
export function shown(options: Options): Options {
  return options;
}
`;

let built: { readonly code: unknown; readonly said: string };
let said: string;

function typedoc(...options: string[]): Promise<typeof built> {
  const bin = join(root, "node_modules/typedoc/bin/typedoc");
  const args = [bin, "--emit", "none", ...options];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: project }, (error, out, err) =>
      resolve({ code: error?.code, said: out + err }),
    );
  });
}

beforeAll(async () => {
  for (const path of ["typedoc.json", "tsconfig.build.json", "tsconfig.json", "scripts/site"]) {
    cpSync(join(root, path), join(project, path), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(project, "node_modules"));
  const exports = { ".": { default: "./dist/index.js" } };
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "gate", exports }));
  for (const page of ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]) {
    writeFileSync(join(project, page), "# Page\n");
  }
  for (const folder of ["src", "guide"]) mkdirSync(join(project, folder));
  writeFileSync(join(project, "src/index.ts"), source);
  built = await typedoc();
  // It stops at the first kind of gap; so that all are named, warnings are let pass.
  ({ said } = await typedoc("--treatWarningsAsErrors", "false"));
});

afterAll(() => rmSync(project, { recursive: true }));

test("the docs of a project with gaps can't be built", () => {
  expect(built.code).toBeGreaterThan(0);
});

test.each([
  ["no sentence", /undocumented.*does not have any documentation/],
  ["no sentence for a property", /Lost\.undescribed.*does not have any documentation/],
  ["no example", "bare of gate has no @example"],
  ["a type that nothing with an example uses", "Lost of gate has no @example"],
  ["a link to nowhere", /Failed to resolve link to "nowhere"/],
])("an export with %s is named", (_gap, text) => {
  expect(said).toMatch(text);
});

test("a type that something with an example uses needs none of its own", () => {
  expect(said).not.toContain("Options of gate");
});
