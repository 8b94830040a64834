/** A word that a shell takes as it is. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) && !word.startsWith("-")
    ? word
    : `'${word.replaceAll("'", "'\\''")}'`;
}
