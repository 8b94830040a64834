import { readFile } from "node:fs/promises";
import { errorTable, helpOf } from "../../errors.js";
import type { Command } from "../command.js";
import { missing } from "../exit.js";
import { plainLines } from "../output/text.js";
import { packageFile } from "../package.js";

const codes = Object.keys(errorTable);

/** `waymark explain`. */
export const command: Command = {
  name: "explain",
  summary: "Print what an error code means and what to do about it",
  details:
    "It reads the guide that ships with the package, so it needs no network. Without a code it lists all.",
  arguments: [
    { name: "code", text: "the code, or the help that an error carries", optional: true },
  ],
  examples: ["waymark explain CHECKPOINT_CONFLICT", "waymark explain"],
  run: async ({ print }, values) => {
    const [given] = values.arguments;
    if (given === undefined) {
      print.result(codes, () => codes.join("\n"));
      return undefined;
    }
    const code = given.slice(given.indexOf("#") + 1).toUpperCase();
    const text = sectionOf(await readFile(packageFile("guide/troubleshooting.md"), "utf8"), code);
    if (!codes.includes(code) || text === undefined) {
      throw missing(`there is no error code "${given}"`, "waymark explain lists them");
    }
    print.result({ code, help: helpOf(code), text }, () => plainLines(`${code}\n\n${text}`));
    return undefined;
  },
};

/** The text below a heading of a Markdown page; `undefined` if there is no such heading. */
function sectionOf(page: string, heading: string): string | undefined {
  const lines = page.split("\n");
  const start = lines.findIndex(
    (line) => /^#+ /.test(line) && line.replace(/^#+ /, "") === heading,
  );
  if (start < 0) return undefined;
  const end = lines.findIndex((line, at) => at > start && /^#{1,3} /.test(line));
  return lines
    .slice(start + 1, end < 0 ? undefined : end)
    .join("\n")
    .trim();
}
