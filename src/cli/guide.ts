import { type Command, type Option, sharedOptions } from "./command.js";
import { exitCodes } from "./exit.js";

/** The guide's page about the command, from the same texts as `--help`. */
export function commandLinePage(commands: readonly Command[]): string {
  const list = commands.map(
    ({ name, summary }) => `| [\`${name}\`](#${name}) | ${cell(summary)} |`,
  );
  const codes = exitCodes.map(([code, meaning]) => `| ${code} | ${meaning} |`);
  return [
    intro,
    table(["command", "what it does"], list),
    "## Options of every command",
    optionsTable(sharedOptions),
    "## Exit codes",
    table(["code", "meaning"], codes),
    config,
    ...commands.map(section),
    "**Next:** [Runtimes](runtimes.md)",
  ]
    .join("\n\n")
    .concat("\n");
}

const intro = `# The waymark command

<!-- Written by npm run cli:guide from the same texts as --help. -->

\`npx waymark\` shows, checks, compares, repairs and continues runs from a terminal, on any store. Name a run
by its id, by the beginning or end of its id as \`list\` shows it, if that has four characters or more and is unique, or by the id of
one of its checkpoints; put an id that begins with a dash last, after \`--\`. Name a checkpoint by its step, its
id, or the node or phase that had completed. Commands that only read write nothing, so you can use them while a
process is working on a run; only a PGlite folder can't be opened twice. Results go to stdout, everything
else to stderr; \`--json\` prints results as JSON. Commands that can't be undone ask first; without a terminal
they need \`--yes\`.

\`\`\`sh
npx waymark list
npx waymark show 019a2f
npx waymark resume 019a2f
\`\`\``;

const config = `## Config

The config is \`waymark.config.ts\`, \`.mts\`, \`.js\`, \`.mjs\` or \`.json\` in the current folder. Only
commands that run nodes need it, to find the graphs. Compiled TypeScript is cached in
\`node_modules/.cache/waymark\`. Relative paths are resolved from the config's folder.

| field | what it is |
| --- | --- |
| \`store\` | the store to use: an address such as \`file:.waymark\` or \`sqlite:runs.db\`, \`{ store, codec }\`, a store, or a name in \`stores\` |
| \`stores\` | stores by name, for \`--store NAME\` |
| \`graphs\` | graphs by name: \`./module.ts#export\`, a StateGraph, or a function that returns one |
| \`codec\` | how to compress and encrypt checkpoints in stores given by address |
| \`redact\` | parts of a State that are never printed, as for \`redact\` from \`waymark/codecs\`: \`data.apiKey\`, \`*.token\`, \`error.message\`, or an expression such as \`/sk-\\w+/\`, in JSON \`"/sk-\\\\w+/"\` |
| \`observer\` | receives the command's \`checkpoint.load\`, \`checkpoint.save\` and \`checkpoint.delete\` events, with \`actor\` and \`purpose\`: an audit log |
| \`log\` | where \`eventLog\` writes: a folder, or a file that ends in \`.jsonl\`; the store's folder by default |

\`\`\`js
// waymark.config.ts
export default {
  store: "file:.waymark",
  graphs: { article: "./src/article.ts#graph" },
  redact: ["*.token"],
};
\`\`\`

Commands that only read open a store given by address in read-only mode. A store object in the config
sets corrupt checkpoints aside when it loads them, as it does in a program.`;

function section({
  name,
  summary,
  details,
  arguments: args = [],
  options = [],
  examples,
}: Command): string {
  const usage = args.map(({ name: argument, optional, many }) => {
    const inner = `${argument}${many === true ? "..." : ""}`;
    return optional === true ? ` [${inner}]` : ` <${inner}>`;
  });
  const rows = args.map(({ name: argument, text }) => `| \`${argument}\` | ${cell(text)} |`);
  return [
    `## ${name}`,
    `${summary}.${details === undefined ? "" : ` ${details}`}`,
    `\`waymark ${name}${usage.join("")} [options]\``,
    ...(rows.length === 0 ? [] : [table(["argument", "what it is"], rows)]),
    ...(options.length === 0 ? [] : [optionsTable(options)]),
    `\`\`\`sh\n${examples.join("\n")}\n\`\`\``,
  ].join("\n\n");
}

function optionsTable(options: readonly Option[]): string {
  const rows = options.map(({ flags, text, choices, many }) => {
    const of = choices === undefined ? "" : `: ${choices.join(", ")}`;
    const again = many === true ? "; may be given several times" : "";
    return `| \`${flags}\` | ${cell(`${text}${of}${again}`)} |`;
  });
  return table(["option", "what it does"], rows);
}

function table(head: readonly string[], rows: readonly string[]): string {
  return [`| ${head.join(" | ")} |`, `| ${head.map(() => "---").join(" | ")} |`, ...rows].join(
    "\n",
  );
}

function cell(text: string): string {
  return text.replace(/\|/g, "\\|").replace(/</g, "&lt;");
}
