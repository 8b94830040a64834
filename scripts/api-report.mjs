// Compares the public API of each entry point in package.json with its report in api/;
// with --update writes the reports. Needs a build.
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Extractor, ExtractorConfig } from "@microsoft/api-extractor";

const update = process.argv.includes("--update");
const root = fileURLToPath(new URL("..", import.meta.url));
const reports = join(root, "api");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
mkdirSync(reports, { recursive: true });

// The report is the only concern here: typedoc checks links, and a test of the package checks that
// types are exported, because it knows all entry points at once.
const none = { logLevel: "none" };
const messages = {
  compilerMessageReporting: { default: { logLevel: "error" } },
  extractorMessageReporting: {
    default: { logLevel: "error" },
    "ae-forgotten-export": none,
    "ae-missing-release-tag": none,
    "ae-unresolved-link": none,
  },
  tsdocMessageReporting: { default: none },
};

const known = new Set();
let failed = false;
for (const [name, target] of Object.entries(manifest.exports)) {
  if (typeof target === "string") continue;
  const report = `${name === "." ? "index" : name.slice(2).replaceAll("/", "-")}.api.md`;
  known.add(report);
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: join(root, target.types),
      apiReport: {
        enabled: true,
        reportFileName: report,
        reportFolder: reports,
        reportTempFolder: join(root, "reports/api"),
      },
      compiler: { tsconfigFilePath: join(root, "tsconfig.build.json") },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: "lf",
      messages,
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(root, "package.json"),
  });
  const result = Extractor.invoke(config, {
    localBuild: update,
    printApiReportDiff: !update,
    messageCallback: (message) => {
      // It says each time that its own TypeScript is older than ours; it reads our types all the same.
      message.handled ||= ["console-preamble", "console-compiler-version-notice"].includes(
        message.messageId,
      );
    },
  });
  failed ||= !result.succeeded;
}

for (const file of readdirSync(reports)) {
  if (known.has(basename(file))) continue;
  if (update) rmSync(join(reports, file));
  else console.error(`api/${file} belongs to no entry point.`);
  failed ||= !update;
}
if (failed) {
  console.error('If the change is meant, "npm run api" writes the new reports.');
  process.exit(1);
}
