import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";

export const name = "memory-flat";
export const title =
  "P12: live heap of a long run, in its last step or after it, whichever is more";

const script = fileURLToPath(new URL("../lib/heap-process.mjs", import.meta.url));

export async function run() {
  const tables = [await flat("no checkpoint", "plain")];
  if (isBuilt) tables.push(await flat("a checkpoint in memory after every step", "saved"));
  return tables;
}

function flat(title, kind) {
  const short = "waymark, 1,000 steps";
  return compare({
    title,
    unit: "MB",
    rounds: 3,
    warmUp: 0,
    contenders: [
      {
        name: "bare await loop, 1,000,000 steps",
        role: "floor",
        sample: () => megabytes("bare", 1_000_000),
      },
      isBuilt && { name: short, role: "ours", sample: () => megabytes(kind, 1_000) },
      isBuilt && {
        name: "waymark, 1,000,000 steps",
        role: "ours",
        sample: () => megabytes(kind, 1_000_000),
        goals: [{ id: "P12", minus: short, atMost: 10 }],
      },
    ],
  });
}

/** Each run in a new process, so that nothing but the run is on its heap. */
function megabytes(kind, steps) {
  const args = ["--expose-gc", script, kind, String(steps)];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${kind} with ${steps} steps ended with ${status}: ${stderr}`);
  return Number(stdout);
}
