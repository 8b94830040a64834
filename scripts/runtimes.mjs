// Other runtimes and packages for tests, in a folder of their own: nothing of it is in `npm ci`.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const platform = `${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;

/** The runtimes, each with the package that brings its binary; none for the one that runs this. */
export const runtimes = {
  node: { name: "Node 20", command: () => process.execPath },
  ...Object.fromEntries(
    [22, 24, 26].map((version) => [
      `node${version}`,
      {
        name: `Node ${version}`,
        package: `node${version}@npm:node-${platform}@${version}`,
        command: (modules) => join(modules, `node${version}/bin/node`),
      },
    ]),
  ),
  bun: {
    name: "Bun 1.4",
    package: "bun@1.4.4",
    command: (modules) => join(modules, "bun/bin/bun.exe"),
  },
  deno: {
    name: "Deno 2.9",
    package: "deno@2.9.6",
    command: (modules) => join(modules, ".bin/deno"),
    args: ["run", "--allow-all"],
  },
};

/**
 * Installs packages into a new folder, which goes when this process ends.
 *
 * @param packages - by what `npm install` takes; their install scripts run.
 * @returns its `node_modules`.
 */
export function install(packages) {
  const folder = mkdtempSync(join(tmpdir(), "waymark-runtimes-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const names = packages.map((one) => one.replace(/(?<=.)@.*/, ""));
  const allowScripts = Object.fromEntries(names.map((name) => [name, true]));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, allowScripts }));
  const modules = join(folder, "node_modules");
  if (packages.length === 0) return modules;
  const { status } = spawnSync("npm", ["install", "--no-audit", "--no-fund", ...packages], {
    cwd: folder,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (status !== 0) throw new Error(`npm install ${packages.join(" ")} ended with ${status}`);
  return modules;
}

/** A script of this project as one file beside a `node_modules`, where it finds what is not bundled. */
export async function bundle(script, modules) {
  const outfile = join(dirname(modules), "bundles", `${Math.random().toString(36).slice(2)}.mjs`);
  mkdirSync(dirname(outfile), { recursive: true });
  await build({
    entryPoints: [join(root, script)],
    outfile,
    absWorkingDir: root,
    bundle: true,
    external: ["#stores/*"],
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "error",
  });
  return outfile;
}

/** Runs a command in this project; says what it ran, and whether it ended well. */
export function run(title, command, args, env = {}) {
  console.log(`== ${title}`);
  const options = { cwd: root, stdio: "inherit", env: { ...process.env, ...env } };
  const { status, error } = spawnSync(command, args, options);
  if (status !== 0) console.error(`${title}: ${error?.message ?? `ended with ${status}`}`);
  return status === 0;
}
