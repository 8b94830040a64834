import { basename, join } from "node:path";
import { build } from "esbuild";

/** A script as one file in a folder, which Node starts fast. */
export async function bundle(path: string, folder: string): Promise<string> {
  const script = join(folder, `${basename(path, ".ts")}.mjs`);
  await build({
    entryPoints: [path],
    outfile: script,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "error",
  });
  return script;
}
