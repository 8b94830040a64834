import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { newFolder } from "../lib/folder.mjs";
import { compare } from "../lib/measure.mjs";
import { entry, isBuilt, root } from "../lib/waymark.mjs";

export const name = "import";
export const title = "P10: start of a process";

const here = fileURLToPath(new URL("..", import.meta.url));

export async function run() {
  const command = commandPath();
  const runs = command && (await tenRuns());
  return [
    await compare({
      title: "a node process that imports it and ends",
      unit: "ms",
      rounds: 15,
      warmUp: 2,
      contenders: [
        { name: "immer, mitt and uuid", role: "floor", sample: importing("immer", "mitt", "uuid") },
        isBuilt && {
          name: "waymark",
          role: "ours",
          sample: importing(pathToFileURL(entry).href),
          goals: [{ id: "P10", times: "floor", atMost: 1.5 }],
        },
        { name: "bare node", role: "reference", sample: importing() },
        command && {
          name: "waymark --help",
          role: "reference",
          sample: () => milliseconds([command, "--help"]),
          goals: [{ id: "P10", minus: "bare node", atMost: 100 }],
        },
        command && {
          name: "waymark list, of ten runs in files",
          role: "reference",
          sample: () => milliseconds([command, "list", "--no-config", "--store", `file:${runs}`]),
        },
        { name: "LangGraph.js", role: "peer", sample: importing("@langchain/langgraph") },
      ],
    }),
  ];
}

/** A folder of a FileStore with ten runs. */
async function tenRuns() {
  const folder = newFolder();
  const [{ State }, { FileStore }] = await Promise.all(
    [entry, join(root, "dist/stores/file.js")].map((file) => import(pathToFileURL(file).href)),
  );
  const store = new FileStore({ root: folder });
  for (let run = 0; run < 10; run++) await store.save(State.create({ run }));
  return folder;
}

function importing(...specifiers) {
  const code = specifiers.map((specifier) => `import ${JSON.stringify(specifier)};`).join("");
  return () => milliseconds(["--input-type=module", "-e", code]);
}

function milliseconds(args) {
  const start = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: here, encoding: "utf8" });
  const elapsed = performance.now() - start;
  if (status !== 0) throw new Error(`node ${args.join(" ")} ended with ${status}: ${stderr}`);
  return elapsed;
}

/** The built `waymark` command, once the package has one. */
function commandPath() {
  const manifest = join(root, "package.json");
  if (!existsSync(manifest)) return undefined;
  const { bin } = JSON.parse(readFileSync(manifest, "utf8"));
  const path = typeof bin === "string" ? bin : bin?.waymark;
  return path && existsSync(join(root, path)) ? join(root, path) : undefined;
}
