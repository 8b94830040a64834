import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

interface Installed {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly hasInstallScript?: boolean;
}

interface Listed {
  readonly version: string;
  readonly license: string;
  readonly released: string;
}

const project = join(import.meta.dirname, "../..");
const read = (path: string) => JSON.parse(readFileSync(join(project, path), "utf8"));

const list: Record<string, Record<string, Listed>> = read("test/package/dependencies.json");
const packages: Readonly<Record<string, Installed>> = read("package-lock.json").packages;

/** Licences that ask no more of those who use waymark than to keep a notice. */
const PERMISSIVE = ["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "0BSD"];
/** How many years a dependency may go without a release before somebody has to look at it. */
const YEARS = 5;

/** All packages that come with waymark, and those that come with them. */
function productionPackages(): Set<string> {
  const found = new Set(Object.keys(read("package.json").dependencies));
  for (const name of found) {
    for (const more of Object.keys(packages[`node_modules/${name}`]?.dependencies ?? {}))
      found.add(more);
  }
  return found;
}

const names: Record<string, readonly string[]> = {
  dependencies: [...productionPackages()],
  peerDependencies: Object.keys(read("package.json").peerDependencies),
};

describe.each(Object.entries(names))("the %s", (kind, of) => {
  const listed = Object.entries(list[kind] ?? {});

  test("are on the list, all of them and nothing else", () => {
    expect(listed.map(([name]) => name)).toEqual([...of].sort());
  });

  test.each(listed)("%s has a permissive licence and a recent release", (name, one) => {
    expect(PERMISSIVE).toContain(one.license);
    const age = Date.now() - Date.parse(one.released);
    expect(age / (365 * 24 * 60 * 60 * 1000)).toBeLessThan(YEARS);
    // A native driver that waymark can do without is not installed.
    const manifest = `node_modules/${name}/package.json`;
    if (name === "better-sqlite3" && !existsSync(join(project, manifest))) return;
    const { version, license } = read(manifest);
    expect(one).toMatchObject({ version, license });
  });
});

test("no package that comes with waymark runs a script when it is installed", () => {
  const scripted = [...productionPackages()].filter(
    (name) => packages[`node_modules/${name}`]?.hasInstallScript,
  );
  expect(scripted).toEqual([]);
});
