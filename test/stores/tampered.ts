import { partsOf, toLine } from "../../src/stores/journal/line.js";

/** An encrypted line as somebody leaves it who has changed it and then made its hash anew. */
export function withOther(line: string): string {
  const { header = "", content = "" } = partsOf(Buffer.from(line)) ?? {};
  const first = content[1] === "A" ? "B" : "A";
  const kind = line.includes('"snapshot":') ? "snapshot" : "patch";
  return toLine(kind, header, `"${first}${content.slice(2)}`).toString();
}
