/** Characters that control a terminal or reverse the direction of text. None of our own output has them. */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  /[\u0000-\u001f\u007f-\u009f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const UNSAFE_BUT_LINES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

const short: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escaped(character: string): string {
  const code = character.charCodeAt(0);
  const hex = code.toString(16);
  return short[character] ?? (code < 256 ? `\\x${hex.padStart(2, "0")}` : `\\u${hex}`);
}

/** A run's text on one line, with control characters escaped. */
export function plain(text: string): string {
  return text.replace(UNSAFE, escaped);
}

/** The same, keeping line breaks and tabs. */
export function plainLines(text: string): string {
  return text.replace(UNSAFE_BUT_LINES, escaped);
}

/** JSON that is safe to print: `JSON.stringify` does not escape all characters that control a terminal. */
export function toJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, bigints, indent) ?? "null";
  return text.replace(UNSAFE_BUT_LINES, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

function bigints(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;
const NARROW = /\p{Mark}/u;

/** How many terminal columns a text takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) {
    width += WIDE.test(character) ? 2 : NARROW.test(character) ? 0 : 1;
  }
  return width;
}

/** Cuts a text to a number of columns, ending in an ellipsis if it was longer. */
export function cut(text: string, width: number): string {
  return widthOf(text) <= width ? text : `${startOf(text, width - 1)}…`;
}

/** The same, cut in the middle: ids created together differ only at their ends. */
export function cutMiddle(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  const start = startOf(text, Math.floor((width - 1) / 2));
  const end = reversed(startOf(reversed(text), width - 1 - widthOf(start)));
  return `${start}…${end}`;
}

/** The beginning of a text that fits a number of columns. */
function startOf(text: string, width: number): string {
  let kept = "";
  let used = 0;
  for (const character of text) {
    used += widthOf(character);
    if (used > width) break;
    kept += character;
  }
  return kept;
}

function reversed(text: string): string {
  return [...text].reverse().join("");
}
