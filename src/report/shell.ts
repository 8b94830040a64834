/**
 * A command as it can be typed.
 *
 * @param runId - an id that begins with a dash would be taken for an option: it comes last, after `--`.
 */
export function typed(verb: string, runId?: string, options: readonly string[] = []): string {
  const isDashed = runId?.startsWith("-") === true;
  const run = runId === undefined ? [] : [runId];
  const words = isDashed ? [...options, "--", ...run] : [...run, ...options];
  return ["waymark", verb, ...words].map(quoted).join(" ");
}

/** A word as a shell takes it for one. */
function quoted(word: string): string {
  return /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}
