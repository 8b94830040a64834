import { hash } from "../graph/fingerprint.js";

/** A text that fits where a name or an id goes: a long one is cut, with a hash in place of the rest. */
export function shortened(text: string, max: number): string {
  const short = text.length <= max ? text : `${text.slice(0, max - 17)}~${hash(text)}`;
  return short.replace(/[\p{Cc}\p{Cs}]/gu, "_");
}
