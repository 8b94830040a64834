// Writes guide/cookbook.md from examples/cookbook: the comment at the top of a recipe is its title and text.
//
//   npm run cookbook [-- --print]   --print only prints the page
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const root = new URL("..", import.meta.url);
const folder = new URL("examples/cookbook/", root);

/** The recipes in the order of the page. */
const order = [
  "durable-agent-loop",
  "rate-limits",
  "map-reduce-with-a-budget",
  "approval-with-a-deadline",
  "what-if",
  "graceful-shutdown",
  "express",
  "fastify",
  "hono",
  "next-route-handler",
  "lambda-handler",
  "nightly-on-workers",
  "sentry",
  "back-up-sqlite",
  "litestream",
  "move-to-another-store",
];

/** The recipes that need a server: the page marks them `ts compile`, and test/examples runs them. */
const onServer = ["nightly-on-workers"];

/** A recipe: its title, its text, its code, and whether it runs as a block of the page. */
function recipeOf(name) {
  const source = readFileSync(new URL(`${name}.ts`, folder), "utf8");
  const [, comment, code] = /^\/\*\*\n(.*?)\n \*\/\n(.*)$/s.exec(source) ?? [];
  if (code === undefined) throw new Error(`${name}.ts has no comment on top`);
  const [title, ...text] = comment.replace(/^ \*\/? ?/gm, "").split("\n\n");
  return { name, title, text, code, isRun: !onServer.includes(name) };
}

/** The page, as it should be. */
function cookbook() {
  const there = readdirSync(folder).map((file) => file.replace(/\.ts$/, ""));
  const lost = there.find((name) => !order.includes(name));
  if (lost !== undefined) throw new Error(`${lost}.ts is not in the order of scripts/cookbook.mjs`);
  const recipes = order.map(recipeOf);
  return [
    "# Cookbook",
    "Short recipes, one file each in `examples/cookbook`, to copy from. The tests run each of them offline, and check that it prints what its comments say.",
    recipes.map(({ title }) => `- [${title}](#${anchorOf(title)})`).join("\n"),
    ...recipes.flatMap(({ title, text, code, isRun }) => [
      `## ${title}`,
      ...text,
      `\`\`\`ts${isRun ? "" : " compile"}\n${code.trim()}\n\`\`\``,
    ]),
    "**Next:** [Concepts](concepts.md)",
  ].join("\n\n");
}

function anchorOf(title) {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}

if (process.argv.includes("--print")) console.log(cookbook());
else writeFileSync(new URL("guide/cookbook.md", root), `${cookbook()}\n`);
