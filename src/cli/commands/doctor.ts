import type { Command } from "../command.js";
import type { Check } from "../doctor/checks.js";
import { exit } from "../exit.js";
import type { Printer } from "../output/printer.js";
import type { Look } from "../output/style.js";
import type { Column } from "../output/table.js";
import { plain } from "../output/text.js";

const signs: Readonly<Record<Check["state"], readonly [sign: string, look: Look]>> = {
  ok: ["ok", "green"],
  warning: ["warning", "yellow"],
  problem: ["problem", "red"],
  info: ["", "dim"],
};

const columns: readonly Column<Check>[] = [
  { head: "state", cell: ({ state }) => signs[state][0], look: ({ state }) => signs[state][1] },
  { head: "what", cell: ({ name }) => name },
  { head: "found", cell: ({ text }) => text, least: 30 },
];

/** `waymark doctor`. */
export const command: Command = {
  name: "doctor",
  summary: "Check versions, the config, and whether the store can be reached, read and written",
  details: "It changes nothing. The exit code is 1 if there is a problem.",
  examples: ["waymark doctor", "waymark doctor --store sqlite:/var/lib/runs.db --json"],
  run: async (context) => {
    const { configChecks, storeChecks, versions } = await import("../doctor/checks.js");
    const checks = [
      ...versions(),
      ...(await configChecks(context)),
      ...(await storeChecks(context)),
    ];
    const isGood = checks.every(({ state }) => state !== "problem");
    const { print } = context;
    print.result({ ok: isGood, checks }, () => checksText(checks, print));
    return isGood ? exit.ok : exit.problems;
  },
};

/**
 * The checks as a table. The text of a problem is never cut off: if it does not fit, it gets a line of its own.
 */
function checksText(checks: readonly Check[], print: Printer): string {
  const [head = "", ...rows] = print.table(columns, checks).split("\n");
  const lines = checks.flatMap(({ state, text }, at) => {
    const [row = "", whole] = [rows[at], plain(text)];
    const isWrong = state === "problem" || state === "warning";
    return isWrong && !row.endsWith(whole) ? [row, `  ${whole}`] : [row];
  });
  return [head, ...lines].join("\n");
}
