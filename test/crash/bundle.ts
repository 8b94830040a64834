import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const project = join(import.meta.dirname, "../..");

/** A script of `fixtures/` as one file that Node starts fast, and a folder for what it writes. */
export async function bundle(
  name: string,
  fixtures = join(import.meta.dirname, "fixtures"),
  external: string[] = [],
): Promise<{ script: string; folder: string }> {
  // Inside the project, so that it finds what is not bundled.
  const folder = mkdtempSync(join(project, "node_modules/.waymark-crash-"));
  const script = join(folder, `${name}.mjs`);
  await build({
    entryPoints: [join(fixtures, `${name}.ts`)],
    outfile: script,
    absWorkingDir: project,
    bundle: true,
    // Stores that the core would load by their address, which none of these scripts does.
    external: ["#stores/*", ...external],
    minify: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "error",
  });
  return { script, folder };
}

export function removeBundle({ folder }: { folder: string }): void {
  rmSync(folder, { recursive: true, force: true });
}
