/**
 * A command, quoted for a shell.
 *
 * @param runId - comes last, after `--`, if it begins with a dash and would be taken for an option.
 */
export function typed(verb: string, runId?: string, options: readonly string[] = []): string {
  const isDashed = runId?.startsWith("-") === true;
  const run = runId === undefined ? [] : [runId];
  const words = isDashed ? [...options, "--", ...run] : [...run, ...options];
  return ["waymark", verb, ...words].map(shellWord).join(" ");
}

/** A word that a shell takes as it is. */
export function shellWord(word: string): string {
  return /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}
