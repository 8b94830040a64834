import { readFileSync } from "node:fs";
import { extname } from "node:path";

/** The fields of package.json that are used here. */
interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
}

// This file is two levels down, in src/ and in dist/.
const root = new URL("../../", import.meta.url);

/** This package's own package.json. */
export function manifest(): Manifest {
  return JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as Manifest;
}

/** A file that the package ships. */
export function packageFile(path: string): URL {
  return new URL(path, root);
}

/** The file of an entry point: built, or its source if this code runs from source. */
export function entryUrl(target: string): string {
  const extension = extname(import.meta.url);
  const path = extension === ".js" ? target : target.replace("/dist/", "/src/");
  return new URL(path.replace(/\.js$/, extension), root).href;
}
