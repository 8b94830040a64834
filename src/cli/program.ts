import { Command as Commander, CommanderError } from "commander";
import { type Command, type Option, sharedOptions } from "./command.js";
import { commandNames, groupOf, loadCommands } from "./commands/index.js";
import { Context } from "./context.js";
import { exit, explain } from "./exit.js";
import { epilogue, examplesOf } from "./help.js";
import type { Io } from "./io.js";
import { Printer } from "./output/printer.js";
import { plainLines } from "./output/text.js";
import { manifest } from "./package.js";
import { Values } from "./values.js";

/**
 * The `waymark` command.
 *
 * @param argv - the arguments after the command's name.
 * @returns the exit code. It never rejects.
 */
export async function main(argv: readonly string[], io: Io): Promise<number> {
  const print = new Printer(io, { json: false, color: !argv.includes("--no-color") });
  try {
    return await run(argv, io);
  } catch (error) {
    if (error instanceof CommanderError) return misused(error, argv, print);
    const { code, message, hint } = explain(error, verbOf(argv));
    print.error(message, hint);
    if (argv.includes("--debug")) io.stderr.write(`${plainLines(stacksOf(error))}\n`);
    return code;
  }
}

async function run(argv: readonly string[], io: Io): Promise<number> {
  const program = new Commander("waymark")
    .description("See, check, compare, repair and continue runs.")
    .usage("<command> [arguments] [options]")
    .version(manifest().version, "--version", "print the version")
    .helpOption("--help", "print this help")
    .commandsGroup(`${groupOf("completion")}:`)
    .helpCommand("help [command]", "print the help of a command")
    .configureHelp({
      showGlobalOptions: true,
      helpWidth: Math.min(io.stdout.columns ?? 80, 100),
      minWidthToWrap: 20,
      // Without [options], which Commander adds to each.
      subcommandTerm: (command) => `${command.name()} ${argumentsOf(command)}`.trimEnd(),
    })
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: () => {},
      outputError: () => {},
    })
    .exitOverride()
    .addHelpText("after", epilogue());
  for (const option of sharedOptions) add(program, option);
  const all = () => loadCommands(commandNames);
  let code: number = exit.ok;
  for (const command of await loadCommands(named(argv))) {
    declare(program, command, async (values) => {
      const context = new Context(io, values, command.name);
      try {
        code = (await command.run(context, values, all)) ?? exit.ok;
      } finally {
        await context.close();
      }
    });
  }
  await program.parseAsync(argv.length === 0 ? ["--help"] : [...argv], { from: "user" });
  return code;
}

function argumentsOf({ registeredArguments }: Commander): string {
  const words = registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return words.join(" ");
}

/** The commands that are named anywhere in the arguments; all of them if none is, for the help. */
function named(argv: readonly string[]): readonly string[] {
  const found = argv.filter((word) => commandNames.includes(word));
  if (found.length === 0 && argv.includes("--version")) return [];
  const isHelp = argv.includes("help") || found.length === 0;
  return isHelp ? commandNames : found;
}

function declare(
  program: Commander,
  command: Command,
  action: (values: Values) => Promise<void>,
): void {
  const { name, summary, details = "", arguments: args = [], options = [] } = command;
  const declared = program
    .command(name)
    .summary(summary)
    .helpGroup(`${groupOf(name)}:`)
    .description(details === "" ? `${summary}.` : `${summary}.\n\n${details}`)
    .addHelpText("after", examplesOf(command));
  for (const { name: argument, text, optional, many } of args) {
    const inner = `${argument}${many === true ? "..." : ""}`;
    declared.argument(optional === true ? `[${inner}]` : `<${inner}>`, text);
  }
  for (const option of options) add(declared, option);
  declared.action(() =>
    action(new Values(declared.processedArgs, declared.optsWithGlobals<Record<string, unknown>>())),
  );
}

function add(command: Commander, { flags, text, many, choices }: Option): void {
  const option = command.createOption(flags, text);
  if (choices !== undefined) option.choices(choices);
  const parse = option.parseArg;
  if (many === true) {
    option.argParser((value: string, before: unknown) => {
      parse?.(value, undefined);
      return [...(Array.isArray(before) ? before : []), value];
    });
  }
  command.addOption(option);
}

function verbOf(argv: readonly string[]): string | undefined {
  return argv.find((word) => commandNames.includes(word));
}

/** Commander throws for `--help` and `--version`, too, with the exit code 0. */
function misused(error: CommanderError, argv: readonly string[], print: Printer): number {
  if (error.exitCode === 0) return exit.ok;
  const name = verbOf(argv);
  // Commander prints its help if it finds no command.
  const message =
    error.code === "commander.help"
      ? "there is no such command, or none was given"
      : error.message.replace(/^error: /, "").replace(/\n/g, " ");
  print.error(message, `try: waymark ${name === undefined ? "" : `${name} `}--help`);
  return exit.usage;
}

function stacksOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\ncaused by ${stacksOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}
