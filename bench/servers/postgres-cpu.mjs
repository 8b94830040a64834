import { readdirSync, readFileSync } from "node:fs";

/** Ticks of the clock in a second, as Linux counts them for all programs. */
const TICKS = 100;

/**
 * How many seconds of CPU a server of Postgres has used: its first process, those that it has, and those that it had.
 * @param {number} pid of the first process
 * @returns {number} NaN where there is no /proc
 */
export function cpuSeconds(pid) {
  const own = times(pid);
  if (own === undefined) return Number.NaN;
  let ticks = own.used + own.ofChildren;
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const other = times(name);
    if (other?.parent === pid) ticks += other.used;
  }
  return ticks / TICKS;
}

function times(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name of the program, in brackets, may hold anything.
    const fields = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const [parent, used, ofChildren] = [
      fields[1],
      fields[11] + fields[12],
      fields[13] + fields[14],
    ];
    return { parent, used, ofChildren };
  } catch {
    return undefined;
  }
}
