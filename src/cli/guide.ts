import { type Command, type Option, sharedOptions } from "./command.js";
import { exitCodes } from "./exit.js";

/** The page of the guide about the command, out of what `--help` is made of. */
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

<!-- Written by npm run cli:guide, out of what --help is made of. -->

\`npx waymark\` shows, checks, compares, repairs and continues runs from a terminal, on any store. A run is
named by its id, by either end of its id while that is unique, as \`list\` cuts it off, or by the id of one
of its checkpoints; an id that begins with a dash comes last, after \`--\`. A checkpoint is named by its step,
its id, or the node or phase that had completed. Commands that only read write nothing, so they can be used
beside a process that works on a run; only a PGlite folder can't be opened twice. Results go to stdout, all
else to stderr; \`--json\` prints results as JSON. What can't be undone asks first; without a terminal to ask
in, it needs \`--yes\`.

\`\`\`sh
npx waymark list
npx waymark show 019a2f
npx waymark resume 019a2f
\`\`\``;

const config = `## Config

\`waymark.config.ts\`, \`.mts\`, \`.js\`, \`.mjs\` or \`.json\` in the folder where the command is called. Only
commands that run nodes need it, to find the graphs. Compiled TypeScript is cached in
\`node_modules/.cache/waymark\`. Relative paths start at the config's folder.

| field | what it is |
| --- | --- |
| \`store\` | the store to use: an address such as \`file:.waymark\` or \`sqlite:runs.db\`, \`{ store, codec }\`, a store, or a name in \`stores\` |
| \`stores\` | stores by name, for \`--store NAME\` |
| \`graphs\` | graphs by name: \`./module.ts#export\`, a StateGraph, or a function that makes one |
| \`codec\` | how checkpoints are compressed and encrypted in stores that an address names |
| \`redact\` | what of a State is never printed, as \`redact\` of \`waymark/codecs\` takes it: \`data.apiKey\`, \`*.token\`, \`error.message\`, or an expression such as \`/sk-\\w+/\` |
| \`observer\` | receives \`checkpoint.load\`, \`checkpoint.save\` and \`checkpoint.delete\` of the command, with \`actor\` and \`purpose\`: an audit log |
| \`log\` | where \`eventLog\` writes: a folder, or a file that ends in \`.jsonl\`; the store's folder by default |

\`\`\`js
// waymark.config.ts
export default {
  store: "file:.waymark",
  graphs: { article: "./src/article.ts#graph" },
  redact: ["*.token"],
};
\`\`\`

A store that an address names is opened read-only by commands that only read. One that the config makes
itself sets corrupt checkpoints aside when they are loaded, as it does in a program.`;

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
