import type { Command } from "./command.js";
import { exitCodes } from "./exit.js";

/** The end of `waymark --help`. */
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

/** The end of the help of one command. */
export function examplesOf({ examples }: Command): string {
  const lines = examples.map((example) => `  $ ${example}`);
  return ["", examples.length === 1 ? "Example:" : "Examples:", ...lines].join("\n");
}
