import type { Command, Option } from "../command.js";
import { longName, optionsOf, RUNS, takesValue } from "./words.js";

/** A completion script for fish. */
export function fish(commands: readonly Command[]): string {
  const names = commands.map(({ name }) => name).join(" ");
  const lines = commands.flatMap((command) => [
    `complete -c waymark -n "not __fish_seen_subcommand_from ${names}" -f -a ${command.name} -d '${fishText(command.summary)}'`,
    ...places(command),
    ...optionsOf(command).map((option) => line(command.name, option)),
  ]);
  return ["# waymark completion fish > ~/.config/fish/completions/waymark.fish", ...lines, ""].join(
    "\n",
  );
}

function places({ name, arguments: args = [] }: Command): string[] {
  const completes = args[0]?.completes;
  const words: Readonly<Record<string, string>> = { run: `(${RUNS})`, shell: "bash zsh fish" };
  const found = words[completes ?? ""];
  if (found === undefined) return [];
  return [`complete -c waymark -n "__fish_seen_subcommand_from ${name}" -f -a "${found}"`];
}

function line(command: string, option: Option): string {
  const value = takesValue(option) ? " -r" : "";
  const name = longName(option).slice(2);
  const choices = option.choices === undefined ? "" : ` -a "${option.choices.join(" ")}"`;
  return `complete -c waymark -n "__fish_seen_subcommand_from ${command}" -l ${name}${value}${choices} -d '${fishText(option.text)}'`;
}

function fishText(text: string): string {
  return text.replace(/['\\]/g, "\\$&");
}
