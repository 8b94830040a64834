import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Built, buildPackage, removeBuilt } from "./built.js";
import { spoil } from "./harness.js";
import { Screen } from "./screen.js";

const graph = `import { existsSync } from "node:fs";
import { StateGraph } from "waymark";
export const graph = new StateGraph({ name: "article" })
  .addNode("draft", (state, { ledger }) => {
    ledger.usage({ inputTokens: 900, outputTokens: 100, costUsd: 0.05 });
    return { parts: ["draft"] };
  })
  .addNode("review", async ({ data }, { signal }) => {
    while (!existsSync(data.gate)) {
      signal.throwIfAborted();
      await new Promise((done) => setTimeout(done, 5));
    }
    return { parts: [...data.parts, "review"] };
  })
  .addNode("a-node-with-a-name-that-is-much-too-long-for-a-small-terminal", (state) => state)
  .addEdge("draft", "review")
  .addEdge("review", "a-node-with-a-name-that-is-much-too-long-for-a-small-terminal")
  .setEntryPoint("draft")
  .setExitPoint("a-node-with-a-name-that-is-much-too-long-for-a-small-terminal");
export const question = new StateGraph({ name: "question" })
  .addNode("ask", (state, context) => context.pause("review", { reason: "needs a look", ask: "fine?" }))
  .setEntryPoint("ask")
  .setExitPoint("ask");
export default { store: "file:runs", graphs: { article: graph, question } };
`;

/** What is another each time. */
function steady(text: string): string {
  return text
    .replace(/\d{4}-\d\d-\d\d(T[\d:]+)(\.\d+)?Z/g, "2026-01-01T00:00:00Z")
    .replace(/\b[\da-f-]+…[\da-f-]+(\.\d+)/g, "01a1e…60e$1")
    .replace(/\b(now {4}|\d+ (s|min) ago|now)/g, "1 s ago")
    .replace(/ +\+(\d+ min( \d+ s)?|\d+(\.\d)? (ms|s))$/gm, "  +9 ms")
    .replace(/\b(\d+ min( \d+ s)?|\d+(\.\d)? (ms|s))\b(?! ago)/g, "9 ms")
    .replace(/(file:|\/)[^ ?"]*\/project/g, "/project")
    .replace(/\b\d{3} B\b/g, "900 B")
    .replace(/[\da-f]{64}/g, "<hash>")
    .replace(/ +$/gm, "");
}

describe("in a terminal", () => {
  let built: Built;
  let folder: string;
  let rc: string;

  beforeAll(async () => {
    built = buildPackage();
    folder = join(built.folder, "project");
    mkdirSync(folder);
    writeFileSync(join(folder, "waymark.config.mjs"), graph);
    rc = join(built.folder, "rc");
    writeFileSync(rc, `PS1='$ '\nwaymark() { "${process.execPath}" "${built.script}" "$@"; }\n`);
  });

  afterAll(() => removeBuilt(built));

  test("a run is started, stopped, seen, repaired and resumed", async () => {
    const screen = new Screen(["tmux", "script"], folder, 80, rc);
    try {
      screen.type('waymark run article --id monday --data \'{"gate":"gate"}\'', "Enter");
      expect(steady((await screen.until(/article {2}review/)).split("\n").at(-1) ?? "")).toBe(
        "article  review  step 1  9 ms  1,000 tokens  $0.05",
      );
      screen.type("C-c");
      const stopped = await screen.until(/continue: waymark resume monday\)\n\$$/);
      expect(stopped).toMatch(/\nstopping run monday … \(Ctrl-C again ends it at once\)\n/);
      screen.type("clear; echo code $?", "Enter");
      await screen.until(/code/);

      const list = steady(await screen.run("waymark list"));
      // How wide a column is depends on how long ago it was.
      expect(list.replace(/ {2,}/g, "  ")).toMatchSnapshot("list");
      expect(screen.text(true)).toContain("\u001b[36min_progress");
      expect(await screen.run("NO_COLOR=1 waymark list; waymark list --no-color")).toContain(
        "monday",
      );
      expect(screen.text(true)).not.toContain("\u001b[36m");
      expect(steady(await screen.run("waymark show monday"))).toMatchSnapshot("show");
      expect(steady(await screen.run("waymark history monday"))).toMatchSnapshot("history");
      expect(steady(await screen.run("waymark diff monday 0 1"))).toMatchSnapshot("diff");
      expect(steady(await screen.run("waymark graph article --draw --run monday"))).toMatchSnapshot(
        "graph",
      );

      spoil(join(folder, "runs/monday/checkpoint_0003.json"));
      expect(steady(await screen.run("waymark validate; echo code $?"))).toMatchSnapshot(
        "validate",
      );
      screen.type("clear; waymark repair", "Enter");
      await screen.until(/Repair 1 run in [^?]*\? \[y\/N\]$/m);
      screen.type("n", "Enter");
      await screen.until(/nothing was done\n\$$/);
      screen.type("clear; waymark repair", "Enter");
      await screen.until(/\[y\/N\]$/m);
      screen.type("y", "Enter");
      const repaired = await screen.until(/checkpoint set aside\n.*\n\$$/);
      expect(steady(repaired.slice(repaired.indexOf("monday: continues")))).toMatchSnapshot(
        "repair",
      );

      writeFileSync(join(folder, "gate"), "");
      expect(steady(await screen.run("waymark resume monday"))).toMatchSnapshot("resume");
      expect(await screen.run("waymark list")).toMatch(
        /completed +a-node-with-a-name-[^ ]*… +3\/3 /,
      );
      expect(steady(await screen.run("waymark run question --id ask"))).toMatchSnapshot("paused");
      expect(steady(await screen.run("waymark show nope; echo code $?"))).toMatchSnapshot("error");
    } finally {
      screen.close();
    }
  }, 300_000);

  test("a small one gets what fits", async () => {
    const screen = new Screen(["script", "tmux"], folder, 60, rc);
    try {
      const list = await screen.run("waymark list");
      expect(list).toMatch(/^run +graph +status +node +steps +updated +cost\n/);
      expect(list).toMatch(/\nmonday +article +completed +a-node-\S*… +3\/3 .* \$0\.05$/);
      const drawn = await screen.run("waymark graph article --draw");
      expect(drawn).toContain("│ a-node-with-a-name-that-is-much-too-long-for-a-small-te… │");
      const widths = `${list}\n${drawn}`.split("\n").map((line) => line.length);
      expect(Math.max(...widths)).toBe(60);
      expect(await screen.run("waymark fork --help")).toMatchSnapshot("small help");
    } finally {
      screen.close();
    }
  }, 300_000);
});
