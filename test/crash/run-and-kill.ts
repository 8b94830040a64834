import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** When to kill a process: after so many lines and a pause, or after some time, in milliseconds. */
export interface Moment {
  readonly lines?: number;
  readonly pause?: number;
  readonly time?: number | undefined;
}

/** Starts a process, kills it at that moment with SIGKILL, and gives all it has said until then. */
export function runAndKill(
  args: readonly string[],
  { lines = Number.POSITIVE_INFINITY, pause = 0, time }: Moment,
): Promise<{ said: string[]; killed: boolean }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const kill = (): unknown => child.kill("SIGKILL");
    const said: string[] = [];
    const timer = time === undefined ? undefined : setTimeout(kill, time);
    createInterface(child.stdout).on("line", (line) => {
      if (said.push(line) === lines) pause === 0 ? kill() : setTimeout(kill, pause);
    });
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      if (code === null || code === 0) resolve({ said, killed: code === null });
      else reject(new Error(`the process ended with ${code}: ${said.join("; ")}`));
    });
  });
}
