import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";

const project = join(import.meta.dirname, "../..");

/** The package as a user has it, and a place for projects that use it. */
export interface Built {
  /** Holds `node_modules`. */
  readonly folder: string;
  /** The script of the command. */
  readonly script: string;
}

/** Builds the package into a folder of its own, where it is found by its name. */
export function buildPackage(): Built {
  const folder = mkdtempSync(join(project, "node_modules/.waymark-cli-"));
  const modules = join(folder, "node_modules");
  const installed = join(modules, "waymark");
  mkdirSync(installed, { recursive: true });
  const script = join(project, "scripts/build.mjs");
  execFileSync(process.execPath, [script, installed, "--no-types"]);
  cpSync(join(project, "package.json"), join(installed, "package.json"));
  for (const name of ["commander", "immer", "jiti", "mitt", "uuid", "pg", "@electric-sql/pglite"]) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(project, "node_modules", name), join(modules, name));
  }
  return { folder, script: join(installed, "dist/cli/main.js") };
}

export function removeBuilt({ folder }: Built): void {
  rmSync(folder, { recursive: true, force: true });
}

/** A process of the command that goes on. */
export interface Going {
  readonly child: ChildProcess;
  /** What it printed so far. */
  readonly printed: { out: string; err: string };
  /** Resolves when it has printed this to stdout or stderr. */
  until(text: string | RegExp): Promise<void>;
  readonly ended: Promise<{ code: number | null; signal: string | null; out: string; err: string }>;
}

/** Starts the command as a process. */
export function start({ script }: Built, cwd: string, args: readonly string[], input = ""): Going {
  const env = { ...process.env, WAYMARK_STORE: "", NO_COLOR: "" };
  const child = spawn(process.execPath, [script, ...args], { cwd, env });
  const printed = { out: "", err: "" };
  const waiting = new Set<() => void>();
  const add = (where: "out" | "err") => (chunk: Buffer) => {
    printed[where] += chunk;
    for (const look of waiting) look();
  };
  child.stdout.on("data", add("out"));
  child.stderr.on("data", add("err"));
  child.stdin.end(input);
  const ended = new Promise<Awaited<Going["ended"]>>((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal, ...printed }));
  });
  const until = (text: string | RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const all = printed.out + printed.err;
        const found = typeof text === "string" ? all.includes(text) : text.test(all);
        if (!found) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
      ended.then(() => reject(new Error(`it ended: ${printed.out}${printed.err}`)));
    });
  return { child, printed, until, ended };
}

/** Runs the command to its end. */
export function run(built: Built, cwd: string, args: readonly string[], input?: string) {
  return start(built, cwd, args, input).ended;
}
