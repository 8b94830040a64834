/*
 * Text from nodes is often a model's, and goes into a document whose other parts must stay what they
 * are. Nothing in here may open a comment, a tag, a fence, a heading or a link definition that
 * reaches beyond its own section.
 */

const invisible =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** What would reach beyond a paragraph, at the start of a line. */
const structure = /^[ \t]*(#{1,6}([ \t]|$)|`{3,}|~{3,}|[=-]+[ \t]*$|([*_-][ \t]*){3,}$)/m;

/** Text of several lines. What is no plain paragraph or list goes into a quote, which ends with it. */
export function block(text: string): string {
  // A link definition would hold for the whole document, also out of a quote.
  const tame = escapeHtml(lines(text)).replaceAll("]:", "]\\:").trim();
  if (!structure.test(tame)) return tame;
  return tame
    .split("\n")
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n");
}

/** A longer title or source is cut. */
const MAX_INLINE = 2000;

/** Text of one line, without a meaning of its own in Markdown. */
export function inline(text: string): string {
  return escapeHtml(
    lines(text.slice(0, MAX_INLINE))
      .replace(/\s+/g, " ")
      .trim()
      .replace(/[\\`*[\]|~]/g, "\\$&")
      .replace(/(?<!\w)_|_(?!\w)/g, "\\_")
      .replace(/^[#+>=-]/, "\\$&")
      .replace(/^(\d+)([.)])/, "$1\\$2")
      .replace(/#+$/, "\\$&"),
  );
}

/** Where something is from: a link if it is one, else its text. */
export function source(text: string): string {
  const url = text.trim();
  return /^https?:\/\/[\w.:/?=&%#+~@,;-]+$/i.test(url) ? `<${url}>` : inline(url);
}

function lines(text: string): string {
  return text.replace(/\r\n?|[\u0085\u2028\u2029]/g, "\n").replace(invisible, "");
}

/** A `<` stays where nobody could take it for a tag. */
function escapeHtml(text: string): string {
  return text.replace(/<(?=[a-z/!?])/gi, "&lt;");
}
