import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

let home;
let count = 0;

/** A new folder, of which all are removed when the process ends; the one before is removed at once. */
export function newFolder() {
  if (home === undefined) {
    home = mkdtempSync(join(process.env.BENCH_FOLDER ?? tmpdir(), "waymark-bench-"));
    process.on("exit", () => rmSync(home, { recursive: true, force: true }));
  }
  rmSync(join(home, String(count)), { recursive: true, force: true });
  const folder = join(home, String(++count));
  mkdirSync(folder);
  return folder;
}
