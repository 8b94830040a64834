import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

interface Installed {
  readonly version: string;
  readonly license: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly hasInstallScript?: boolean;
}

const project = join(import.meta.dirname, "../..");
const read = (path: string) => JSON.parse(readFileSync(join(project, path), "utf8"));

/** Licences that ask no more of those who use waymark than to keep a notice. */
const PERMISSIVE = ["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "0BSD"];
/** How many years a dependency may go without a release before somebody has to look at it. */
const YEARS = 5;

/** All packages that come with waymark, by their names. */
function productionPackages(): Map<string, Installed> {
  const packages: Readonly<Record<string, Installed>> = read("package-lock.json").packages;
  const found = new Map<string, Installed>();
  const add = (names: Iterable<string>): void => {
    for (const name of names) {
      const installed = packages[`node_modules/${name}`];
      if (installed === undefined || found.has(name)) continue;
      found.set(name, installed);
      add(Object.keys(installed.dependencies ?? {}));
    }
  };
  add(Object.keys(packages[""]?.dependencies ?? {}));
  return found;
}

test("every package that comes with waymark is on the list, with its licence and its last release", () => {
  const list = read(".ci/dependencies.json");
  const packages = [...productionPackages()].map(([name, { version }]) => {
    const { license } = read(`node_modules/${name}/package.json`);
    return [name, { version, license, released: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) }];
  });
  expect(list).toEqual(Object.fromEntries(packages));
  for (const [name, { license, released }] of Object.entries<Record<string, string>>(list)) {
    expect(PERMISSIVE, name).toContain(license);
    const age = Date.now() - Date.parse(released ?? "");
    expect(age / (365 * 24 * 60 * 60 * 1000), name).toBeLessThan(YEARS);
  }
});

test("no package that comes with waymark runs a script when it is installed", () => {
  const scripted = [...productionPackages()].filter(([, { hasInstallScript }]) => hasInstallScript);
  expect(scripted).toEqual([]);
});
