import { built } from "../lib/waymark.mjs";
import { cycleInStore } from "../workloads/cycle-in-store.mjs";

const { FileStore } = await built("stores/file.js");
const cycle = cycleInStore((options) => new FileStore(options));

export const { prepare } = cycle;

/** With what is done in the background, such as removing old checkpoints. */
export async function run(steps, options) {
  const made = await cycle.run(steps, options);
  await cycle.close();
  return made;
}
