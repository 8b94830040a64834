// Writes guide/command-line.md out of what `waymark --help` is made of; run it by tsx.
import { writeFileSync } from "node:fs";
import { commandNames, loadCommands } from "../src/cli/commands/index.ts";
import { commandLinePage } from "../src/cli/guide.ts";

const page = new URL("../guide/command-line.md", import.meta.url);
writeFileSync(page, commandLinePage(await loadCommands(commandNames)));
