/**
 * The commit, the host and the versions that a run runs on, as metadata.
 *
 * @packageDocumentation
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { checkOptions, text } from "./options.js";
import type { Metadata } from "./state/metadata.js";

/** Options of {@link environment}. */
export interface EnvironmentOptions {
  /** A folder of the application, for its commit and its package.json; the working directory by default. */
  readonly cwd?: string;
}

/** How long git may take, in milliseconds. */
const GIT_TIMEOUT = 5000;

/**
 * Metadata about the environment of a run: `commit` and `dirty` of the git repository, `host`, `pid`, `node`,
 * `waymark`, and `package` as `name@version` of the nearest package.json. Unknown values are omitted. As a
 * graph's metadata it is updated by every resume, so a run's history shows which commit made which
 * checkpoint.
 *
 * It runs git and reads files synchronously: call it once, at startup.
 *
 * @throws ConfigError if an option is invalid.
 *
 * @example
 * ```ts
 * import { State, StateGraph } from "waymark";
 * import { environment } from "waymark/environment";
 *
 * const graph = new StateGraph<{ n: number }>({ metadata: environment() })
 *   .addNode("one", () => ({ n: 1 }))
 *   .setEntryPoint("one")
 *   .setExitPoint("one");
 * const { metadata } = await graph.execute(State.create({ n: 0 }));
 * console.log(metadata.node === process.version, metadata.pid === process.pid); // true true
 * ```
 */
export function environment(options: EnvironmentOptions = {}): Metadata {
  checkOptions("environment", options, { cwd: text });
  const cwd = resolve(options.cwd ?? process.cwd());
  const commit = git(cwd, "rev-parse", "HEAD");
  const changes = commit === undefined ? undefined : git(cwd, "status", "--porcelain");
  const application = packageOf(cwd);
  const waymark = versionIn(new URL("../package.json", import.meta.url));
  return {
    ...(commit !== undefined && { commit }),
    ...(changes !== undefined && { dirty: changes !== "" }),
    ...{ host: hostname(), pid: process.pid, node: process.version },
    ...(waymark !== undefined && { waymark: waymark.version }),
    ...(application !== undefined && { package: `${application.name}@${application.version}` }),
  };
}

/** The output of git; `undefined` without git or outside a repository. */
function git(cwd: string, ...args: readonly string[]): string | undefined {
  try {
    const stdio = ["ignore", "pipe", "ignore"] as const;
    // Read-only: it must neither wait for nor take the lock of the index.
    const env = { ...process.env, GIT_OPTIONAL_LOCKS: "0" };
    return execFileSync("git", args, { cwd, env, stdio: [...stdio], timeout: GIT_TIMEOUT })
      .toString()
      .trim();
  } catch {
    return undefined;
  }
}

/** The nearest package with a name and a version, from a folder upwards. */
function packageOf(folder: string): Package | undefined {
  const found = versionIn(join(folder, "package.json"));
  const above = dirname(folder);
  return found ?? (above === folder ? undefined : packageOf(above));
}

interface Package {
  readonly name: string;
  readonly version: string;
}

function versionIn(path: string | URL): Package | undefined {
  try {
    const { name, version } = JSON.parse(readFileSync(path, "utf8")) as Partial<Package>;
    return typeof name === "string" && typeof version === "string" ? { name, version } : undefined;
  } catch {
    return undefined;
  }
}
