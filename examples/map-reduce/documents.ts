/** How many documents there are. */
export const total = 1000;

const vocabulary = ["cairn", "stone", "path", "summit", "fog", "map", "river", "ridge"];

/** A document, always the same one for an index. */
export function documentAt(index: number): string {
  let seed = index + 1;
  const words = Array.from({ length: 20 + (index % 30) }, () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return vocabulary[(seed >> 8) % vocabulary.length] ?? "";
  });
  return words.join(" ");
}

/** How often each word is used. */
export type Counts = Readonly<Record<string, number>>;

/** The words of a text. */
export function countWords(text: string): Counts {
  const counts: Record<string, number> = {};
  for (const word of text.split(" ")) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

/** All counts together. */
export function sum(all: readonly Counts[]): Counts {
  const counts: Record<string, number> = {};
  for (const one of all) {
    for (const [word, count] of Object.entries(one)) counts[word] = (counts[word] ?? 0) + count;
  }
  return counts;
}
