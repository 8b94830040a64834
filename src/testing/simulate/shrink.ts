import type { Fault, SimulationScript } from "./script.js";

/** The most scripts to try. */
const MOST_TRIES = 400;

/**
 * The smallest script found that still fails: tries fewer faults, then fewer runs and workers, then shorter faults.
 */
export async function shrink(
  script: SimulationScript,
  fails: (script: SimulationScript) => Promise<boolean>,
): Promise<SimulationScript> {
  let smallest = script;
  let tries = 0;
  const accept = async (candidate: SimulationScript): Promise<boolean> => {
    if (++tries > MOST_TRIES || !(await fails(candidate))) return false;
    smallest = candidate;
    return true;
  };
  for (let size = script.faults.length; size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < smallest.faults.length; ) {
      const faults = smallest.faults.filter((_, index) => index < from || index >= from + size);
      if (!(await accept({ ...smallest, faults }))) from += size;
    }
  }
  if (smallest.store === "shared-file") await accept({ ...smallest, store: "file" });
  if (smallest.queue) await accept({ ...smallest, queue: false });
  while (smallest.runs > 1 && (await accept({ ...smallest, runs: smallest.runs - 1 })));
  while (smallest.workers > 1 && (await accept(withoutLastWorker(smallest))));
  for (const index of smallest.faults.keys()) {
    for (const field of ["for", "by"] as const) {
      const value = smallest.faults[index]?.[field] ?? 0;
      if (Math.abs(value) < 2) continue;
      const changed = (one: Fault, at: number): Fault =>
        at === index ? { ...one, [field]: Math.round(value / 2) } : one;
      await accept({ ...smallest, faults: smallest.faults.map(changed) });
    }
  }
  return smallest;
}

function withoutLastWorker({ workers, faults, ...rest }: SimulationScript): SimulationScript {
  const left = workers - 1;
  const stays = ({ worker = 0 }: Fault): boolean => worker < left;
  return { ...rest, workers: left, faults: faults.filter(stays) };
}
