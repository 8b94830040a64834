import { type Command, type Option, sharedOptions } from "../command.js";

/** The long name of an option: `--at` of `--at <checkpoint>`. */
export function longName({ flags }: Option): string {
  return flags.split(" ")[0] ?? flags;
}

/** Whether an option takes a value. */
export function takesValue({ flags }: Option): boolean {
  return flags.includes("<");
}

/** All options of a command. */
export function optionsOf({ options = [] }: Command): readonly Option[] {
  return [...options, ...sharedOptions, { flags: "--help", text: "print its help" }];
}

/** The command with which a shell lists run ids. It prints nothing if it fails. */
export const RUNS = "waymark completion --runs 2>/dev/null";
