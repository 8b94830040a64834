// What the docs site needs of TypeDoc beyond its options: one module for each entry point of package.json,
// named as it is imported; the guide in its order; exports under the contract's words; diagrams
// that are drawn by a copy of Mermaid that the site carries with it.
import { copyFileSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import {
  Application,
  Comment,
  CommentTag,
  Converter,
  MarkdownEvent,
  PageEvent,
  ReflectionKind,
  RendererEvent,
} from "typedoc";
import { addExamples, addThrows, documentedOf, linkThrows } from "./comments.mjs";

const require = createRequire(import.meta.url);
const root = join(import.meta.dirname, "../..");

/** The guide in its groups, in the order in which a reader may go through it. */
export const groups = JSON.parse(readFileSync(join(import.meta.dirname, "groups.json"), "utf8"));

/** Pages beside the guide. */
const others = ["CHANGELOG.md", "CONTRIBUTING.md"];

/** Where the exports of the core belong, by the file that declares them; the first that fits. */
const words = [
  ["Errors", /^src\/(errors(\/.*)?|nodes\/errors)\.ts$/],
  ["Predicates", /^src\/state\/predicates\.ts$/],
  ["Pauses", /^src\/(graph\/pause|state\/schema)\.ts$/],
  ["Ledger", /^src\/(state\/ledger|usage)/],
  ["State", /^src\/state\//],
  ["Triggers", /^src\/run\/saving\/triggers\.ts$/],
  ["StateGraph", /^src\/(graph|run)\//],
  ["Node factories", /^src\/nodes\//],
  ["Migrations", /^src\/checkpoint\/migration\.ts$/],
  ["Checkpoints and stores", /^src\/(checkpoint|stores)\//],
  ["Recovery", /^src\/recovery\//],
  ["Events and observers", /^src\/(events|event-(map|data)|audit|observers\/.*)\.ts$/],
];

/** The entry points of the package by their source files. */
function entryPoints() {
  const { name, exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return new Map(
    Object.entries(exports)
      .filter(([, target]) => typeof target === "object")
      .map(([path, target]) => [
        target.default.replace("./dist/", "src/").replace(/\.js$/, ".ts"),
        `${name}${path.slice(1)}`,
      ]),
  );
}

/** The pages of the guide in their order; one that is in no group fails the build. */
export function guide() {
  const order = Object.values(groups).flat();
  const there = readdirSync(join(root, "guide"))
    .filter((file) => file.endsWith(".md"))
    .map((file) => file.slice(0, -".md".length));
  const lost = there.find((page) => !order.includes(page));
  if (lost !== undefined) throw new Error(`guide/${lost}.md is in no group of ${import.meta.url}`);
  return order.filter((page) => there.includes(page));
}

/** The group that a document is listed under. */
function groupOf(file) {
  const page = basename(file, ".md");
  return Object.keys(groups).find((name) => groups[name].includes(page)) ?? "Reference";
}

function putUnder(reflection, word) {
  reflection.comment ??= new Comment();
  reflection.comment.blockTags.push(new CommentTag("@category", [{ kind: "text", text: word }]));
}

function sourceOf(project, reflection) {
  const path = project.getSymbolIdFromReflection(reflection)?.fileName ?? "";
  const at = path.replaceAll("\\", "/").lastIndexOf("src/");
  return at < 0 ? "" : path.replaceAll("\\", "/").slice(at);
}

function nameModules(project, entries) {
  for (const module of project.getReflectionsByKind(ReflectionKind.Module)) {
    const name = entries.get(sourceOf(project, module));
    if (name === undefined) throw new Error(`module ${module.name} is no entry point`);
    module.name = name;
    if (name === "waymark") categorize(project, module);
    putUnder(module, "API");
  }
}

function categorize(project, module) {
  for (const child of module.children ?? []) {
    const source = sourceOf(project, child);
    const [word] = words.find(([, pattern]) => pattern.test(source)) ?? [];
    if (word === undefined)
      throw new Error(`${child.name} (${source}) has no word in ${import.meta.url}`);
    putUnder(documentedOf(child), word);
  }
}

const fence = /^```mermaid\n(.*?)^```$/gms;

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** @param {Application} app */
export function load(app) {
  app.on(Application.EVENT_BOOTSTRAP_END, () => {
    // What several export is documented at the first: the studio comes last, as it exports what others have.
    const isStudio = (file) => file.startsWith("src/studio/");
    const files = [...entryPoints().keys()].sort((one, other) => isStudio(one) - isStudio(other));
    app.options.setValue("entryPoints", files);
    const pages = guide().map((page) => `guide/${page}.md`);
    app.options.setValue("projectDocuments", [...pages, ...others]);
  });

  // A page's title is its first heading.
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_context, document) => {
    const text = document.content.map(({ text }) => text).join("");
    putUnder(document, groupOf(`${document.name}.md`));
    document.name = /^# (.+)$/m.exec(text)?.[1] ?? document.name;
  });

  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) =>
    nameModules(project, entryPoints()),
  );

  // After all else is resolved: what refers to what, and what implements what.
  app.converter.on(
    Converter.EVENT_RESOLVE_END,
    ({ project }) => {
      addExamples(project, app.serializer, app.logger);
      addThrows(project);
      linkThrows(project);
    },
    -1000,
  );

  app.renderer.on(
    MarkdownEvent.PARSE,
    (event) => {
      event.parsedText = event.parsedText.replace(
        fence,
        (_, code) => `<pre class="mermaid">\n${escaped(code)}</pre>`,
      );
    },
    1000,
  );

  // The name of a module may break at its slashes.
  app.renderer.on(PageEvent.END, (page) => {
    page.contents = page.contents?.replace(/<h1>Module [^<]*<\/h1>/, (title) =>
      title.replace(/(?<=\w)\//g, "/<wbr/>"),
    );
  });

  app.renderer.on(PageEvent.END, (page) => {
    if (!page.contents?.includes('<pre class="mermaid">')) return;
    const base = page.url.split("/").slice(1).fill("../").join("");
    const scripts = ["mermaid.tiny.js", "diagrams.js"]
      .map((file) => `<script defer src="${base}assets/${file}"></script>`)
      .join("");
    page.contents = page.contents.replace("</head>", `${scripts}</head>`);
  });

  app.renderer.on(RendererEvent.END, ({ outputDirectory }) => {
    const mermaid = require.resolve("@mermaid-js/tiny");
    copyFileSync(mermaid, join(outputDirectory, "assets/mermaid.tiny.js"));
    copyFileSync(
      join(import.meta.dirname, "diagrams.js"),
      join(outputDirectory, "assets/diagrams.js"),
    );
  });
}
