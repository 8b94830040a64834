import type { Checked, CheckedRun, Finding } from "./finding.js";

const UNUSED = "none was made from it";
const SET_ASIDE = "what is in the log's quarantine may have been it";

/**
 * What is wrong with a run, and what is good to know of it.
 *
 * @param isThere - whether a run is in the store.
 */
export function findingsOf(
  { runId, checkpoints, quarantined, hasStrays, others }: CheckedRun,
  isThere: (runId: string) => boolean,
): readonly Finding[] {
  const note = (what: Finding["what"], sequence: number, text: string): Finding => {
    return { level: "note", what, runId, sequence, text };
  };
  const problem = (what: Finding["what"], sequence: number, text: string): Finding => {
    return { level: "problem", what, runId, sequence, text };
  };
  const aside = new Set(quarantined);
  const faults = checkpoints.flatMap(({ sequence, fault }) => {
    if (fault === undefined) return [];
    // What was copied to quarantine stays in a journal until it is compacted.
    const isKnown = aside.has(sequence) || (fault.what === "lost" && (aside.size > 0 || hasStrays));
    return [(isKnown ? note : problem)(fault.what, sequence, fault.text)];
  });
  const isEmpty = checkpoints.every(({ fault }) => fault !== undefined);
  const [origin] = checkpoints.flatMap((one) => one.origin ?? []);
  const isOrphan = origin !== undefined && !isThere(origin.runId);
  return [
    ...faults,
    ...(isEmpty ? [problem("empty", 0, "it has no checkpoint that is whole")] : []),
    ...gaps(checkpoints, aside).map(({ at, isNeeded }) =>
      isNeeded && !hasStrays
        ? problem("gap", at, "this checkpoint is missing")
        : note("gap", at, `this checkpoint is missing; ${isNeeded ? SET_ASIDE : UNUSED}`),
    ),
    ...strangers(checkpoints, aside).map(({ sequence, parentId }) =>
      problem("chain", sequence, `it was made from checkpoint ${parentId}, which is not there`),
    ),
    ...[...aside].sort((a, b) => a - b).map((at) => note("quarantine", at, "it is in quarantine")),
    ...(isOrphan
      ? [note("orphan", 0, `the run it was forked from, ${origin.runId}, is gone`)]
      : []),
    ...others,
  ];
}

/**
 * The sequences that are missing between the oldest and the newest. One that was corrupt is not taken
 * along to another store; what comes after it was made from an earlier one then.
 */
function gaps(
  checkpoints: readonly Checked[],
  aside: ReadonlySet<number>,
): { readonly at: number; readonly isNeeded: boolean }[] {
  const missing: { at: number; isNeeded: boolean }[] = [];
  const ids = new Set<string>();
  for (const [index, { sequence, checkpointId, parentId }] of checkpoints.entries()) {
    const before = checkpoints[index - 1]?.sequence ?? sequence;
    for (let at = before + 1; at < sequence; at++) {
      if (!aside.has(at)) missing.push({ at, isNeeded: !ids.has(parentId) });
    }
    ids.add(checkpointId);
  }
  return missing;
}

/** Checkpoints that name one that never was; only a history that is whole can tell. */
function strangers(checkpoints: readonly Checked[], aside: ReadonlySet<number>): Checked[] {
  const isWhole =
    checkpoints[0]?.sequence === 1 &&
    aside.size === 0 &&
    checkpoints.every(({ fault }) => fault === undefined);
  if (!isWhole) return [];
  const known = new Set<string>(["", checkpoints[0]?.parentId ?? ""]);
  return checkpoints.filter(({ checkpointId, parentId }) => {
    const isKnown = known.has(parentId);
    known.add(checkpointId);
    return !isKnown;
  });
}
