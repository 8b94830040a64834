import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The project's folder. */
export const root = join(import.meta.dirname, "../..");

/** The pages that people read, as paths from the project's folder. */
export function pages(): string[] {
  const guide = readdirSync(join(root, "guide"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `guide/${name}`);
  const single = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"];
  return [...single.filter((path) => existsSync(join(root, path))), ...guide];
}

/** A fenced block of a page. */
export interface Block {
  /** What stands behind the fence, such as `ts`. */
  readonly info: string;
  readonly code: string;
  /** The line of its opening fence, from 1 up. */
  readonly line: number;
}

/** The fenced blocks of a page, in their order. */
export function blocksOf(path: string): Block[] {
  const text = readFileSync(join(root, path), "utf8");
  return [...text.matchAll(/^```([^\n]*)\n(.*?)^```$/gms)].map((match) => ({
    info: match[1] ?? "",
    code: match[2] ?? "",
    line: text.slice(0, match.index).split("\n").length,
  }));
}
