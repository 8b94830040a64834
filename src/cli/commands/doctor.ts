import type { Command } from "../command.js";
import type { Check } from "../doctor/checks.js";
import { exit } from "../exit.js";
import type { Look } from "../output/style.js";
import type { Column } from "../output/table.js";

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
  details: "It changes nothing. The exit code is 1 when there is a problem.",
  examples: ["waymark doctor", "waymark doctor --store journal:/var/lib/runs --json"],
  run: async (context) => {
    const { configChecks, storeChecks, versions } = await import("../doctor/checks.js");
    const checks = [
      ...versions(),
      ...(await configChecks(context)),
      ...(await storeChecks(context)),
    ];
    const isGood = checks.every(({ state }) => state !== "problem");
    const { print } = context;
    print.result({ ok: isGood, checks }, () => print.table(columns, checks));
    return isGood ? exit.ok : exit.problems;
  },
};
