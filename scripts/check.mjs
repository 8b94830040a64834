// Runs every `check:*` script of package.json in its order: one line each, and at the first that
// fails its whole output. A tool that is missing fails like any other.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const root = new URL("..", import.meta.url);
const { scripts } = JSON.parse(readFileSync(new URL("package.json", root), "utf8"));
const gates = Object.keys(scripts).filter((name) => name.startsWith("check:"));

for (const gate of gates) {
  const started = performance.now();
  const { status, stdout, stderr, error } = spawnSync("npm", ["run", "--silent", gate], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    shell: process.platform === "win32",
  });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const name = gate.slice("check:".length).padEnd(10);
  if (status !== 0) {
    console.log(`FAIL  ${name} ${seconds} s\n\n${stdout ?? ""}${stderr ?? ""}${error ?? ""}`);
    console.log(`"npm run ${gate}" failed.`);
    process.exit(1);
  }
  // A gate that measures something says it in a line that begins with "= ".
  const said = stdout.split("\n").find((line) => line.startsWith("= ")) ?? "";
  console.log(`ok    ${name} ${seconds} s  ${said.slice(2)}`.trimEnd());
}
