/*
 * Text from nodes often comes from a model. It must not open a comment, a tag, a fence, a heading or a link
 * definition that affects the document beyond its own section.
 */

const invisible =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** Markdown at the start of a line that would end the paragraph. */
const structure = /^[ \t]*(#{1,6}([ \t]|$)|`{3,}|~{3,}|[=-]+[ \t]*$|([*_-][ \t]*){3,}$)/m;

/** Text of several lines; as a block quote if it has more structure than paragraphs and lists. */
export function block(text: string): string {
  // A link definition applies to the whole document, even from inside a quote.
  const tame = escapeHtml(lines(text)).replaceAll("]:", "]\\:").trim();
  if (!structure.test(tame)) return tame;
  return tame
    .split("\n")
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n");
}

/** The maximum length of a title or a source. */
const MAX_INLINE = 2000;

/** Text of one line, with its Markdown escaped. */
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

/** A source: a link if it is a URL, otherwise text. */
export function source(text: string): string {
  const url = text.trim();
  return /^https?:\/\/[\w.:/?=&%#+~@,;-]+$/i.test(url) ? `<${url}>` : inline(url);
}

function lines(text: string): string {
  return text.replace(/\r\n?|[\u0085\u2028\u2029]/g, "\n").replace(invisible, "");
}

/** Escapes `<` only where it could start a tag. */
function escapeHtml(text: string): string {
  return text.replace(/<(?=[a-z/!?])/gi, "&lt;");
}
