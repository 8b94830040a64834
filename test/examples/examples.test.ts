import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { command, outputOf, root } from "./process.js";

const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** The lines, or parts of lines, that an example must print; main-job has a test of its own. */
const printed: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  minimal: ["completed 6 0.8", 'n1 -.->|"too short"| n0'],
  "research-agent": [
    "     tried again: the network went away after the answer",
    '-> search for "graves", the score is 0.67',
    "-> publish, the score is 1.00",
    /^ {2}all +219 +120 {2}0\.002457$/m,
    '  | ## Searched for "cairns graves"',
    "  | - <https://example.org/cairns/history>",
  ],
  "agent-loop": [
    'publish needs approval: {"title":"Cairns"',
    "Made twice: read animals, which was in flight",
    "10 messages, 5 calls of the model",
    "5000 + 250 tokens, 0.0125 USD",
  ],
  "openai-agent": [
    '  failed: node "tools" failed: the weather service is down',
    "Answer: Oslo: -3 °C, Cairns: 31 °C.",
    "5 calls, 200 + 40 tokens",
  ],
  "customer-support": [
    "laptop: completed: Hold the power button for ten seconds.",
    "order-17: paused, a refund needs an approval",
    "Refunded once, with the key order-17:2:refund",
  ],
  "human-approval": [
    "laptop: paused, needs an approval: Buy for 1800 EUR?",
    "laptop: refused, input does not fit its schema: must be yes or no",
    "laptop: completed, ordered for 1800 EUR with the key laptop:2:order",
    "sauna: completed, not ordered",
  ],
  "map-reduce": [
    /First process: \d+ documents, killed with SIGKILL/,
    /Second process: found \d+ done, worked on \d+/,
    "  cairn   5311",
    "Nothing that was acknowledged was worked on again, and the counts are right.",
  ],
  "etl-dag": [
    'failed: item 2 ("rates") failed: the bank is offline',
    "layer 1 (2 of 3 were done)",
    "  NO  35.00",
  ],
  "schema-migration": [
    "order-17: paused, version 0",
    "there is no migration from 2 to 3",
    "Dear Ada King Lovelace, thank you for 19.99 EUR",
    "order-17: completed, version 2",
    "the checkpoint is newer than this graph",
  ],
  "encrypted-store": [
    "bob/checkpoint_0002.json  2029",
    "bob/checkpoint_0002.json  2030",
    'Without the old key: "bob" is completed',
    "With a wrong key: codec.encrypt.keys.2030 is not the key",
  ],
  "custom-store": [
    /WebStorageStore: (\d+) of \1 tests passed/,
    "failed: of two States built on one checkpoint, the second to be saved is a conflict",
    "completed: Ada, London",
  ],
  "open-telemetry": [
    /^ {2}run letter +status=failed .*error\.type=NODE_FAILED$/m,
    /^ {4}node write +attempt=1 {2}gen_ai\.usage\.input_tokens=120/m,
    /^ {2}run letter +status=completed {2}link=resumed$/m,
  ],
  "http-endpoint": [
    "  202 in_progress, step 0",
    "  409 it is not running",
    "(the run asks: Publish it?)",
    "  400 input does not fit its schema: must be",
    "  200 completed, step 14",
  ],
  "hono-sse": [
    "The first reader leaves after event: graph.start",
    "The second reader got: cairns above the snow cairns above the wind",
    "The run is completed",
  ],
  studio: [/^refund +paused +refund-A-1043$/m, "without its token: 401"],
  workers: [
    /Worker [ABC] is killed with SIGKILL while it charges order-05/,
    /order-05 {2}reserve .*\b([ABC]) {2}charge \1, then (?!\1)[ABC]\b.* {2}ship/,
    /order-05 was taken over after \d+\.\d s/,
    "Every order was shipped, and no node ran again whose result was saved.",
  ],
};

const folders = readdirSync(join(root, "examples"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  // The recipes run as the blocks of the page that shows them.
  .filter((name) => name !== "cookbook");

// Some start several processes, on a machine that does other things as well.
describe.concurrent("examples", () => {
  test.each(Object.entries(printed))("%s holds, and says so", async (name, parts) => {
    const output = await outputOf(command(name));
    for (const part of parts) expect(output).toMatch(part);
  });
});

describe("the folder of examples", () => {
  test("has none that is not run", () => {
    expect([...Object.keys(printed), "main-job"].sort()).toEqual(folders.toSorted());
  });

  test.each(folders)("%s says how to run it, and stands in the list", (name) => {
    expect(existsSync(join(root, "examples", name, "main.ts"))).toBe(true);
    expect(read(`examples/${name}/main.ts`)).toContain(`npx tsx examples/${name}/main.ts`);
    expect(read("examples/README.md")).toContain(`(${name}/main.ts)`);
    expect(read("examples/README.md")).toContain(`\`npx tsx examples/${name}/main.ts\``);
  });

  test("minimal is the first example of the README", () => {
    const [, first = ""] = read("README.md").match(/^```ts\n(.*?)^```$/ms) ?? [];
    // However they are formatted.
    const bare = (code: string): string =>
      code
        .replace(/ \/\/ .*$|^\/\/ .*$/gm, "")
        .replace(/\s+/g, "")
        .replace(/,([)}\]])/g, "$1");
    const [imports = "", ...rest] = first.split(/(?<=from "waymark";\n)/);
    const minimal = bare(read("examples/minimal/main.ts"));
    expect(minimal).toContain(bare(imports));
    expect(minimal).toContain(bare(rest.join("")));
  });
});
