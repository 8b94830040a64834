import type { Command } from "./command.js";
import { exitCodes } from "./exit.js";

/** What the help of the whole command ends with. */
export function epilogue(): string {
  const codes = exitCodes.map(([code, meaning]) => `  ${String(code).padEnd(4)} ${meaning}`);
  return [
    "",
    "Exit codes:",
    ...codes,
    "",
    "Examples:",
    "  $ waymark list --status failed",
    "  $ waymark resume 019a2f --input '\"yes\"'",
    "",
    "waymark <command> --help describes each command.",
  ].join("\n");
}

/** What the help of one command ends with. */
export function examplesOf({ examples }: Command): string {
  const lines = examples.map((example) => `  $ ${example}`);
  return ["", examples.length === 1 ? "Example:" : "Examples:", ...lines].join("\n");
}
