import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

/** The folder of the project. */
export const root = join(import.meta.dirname, "../..");

/** How to run an example, as `npx tsx` does. */
export const command = (name: string): string[] => [
  process.execPath,
  "--import",
  "tsx",
  `examples/${name}/main.ts`,
];

/** What a command prints; rejects, with that in its message, when it does not end with 0. */
export async function outputOf([file = "", ...args]: readonly string[]): Promise<string> {
  const settings = { cwd: root, env: { ...process.env, NO_COLOR: "1" } };
  const { stdout } = await promisify(execFile)(file, args, settings).catch((error) => {
    throw new Error(`${error.message}\n${error.stdout}`);
  });
  return stdout;
}
