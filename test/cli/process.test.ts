import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Built, buildPackage, removeBuilt, run, start } from "./built.js";
import { type Databases, startDatabases } from "./database.js";
import { damage } from "./harness.js";

let built: Built;
let databases: Databases;

beforeAll(async () => {
  built = buildPackage();
  databases = await startDatabases();
});

afterAll(async () => {
  await databases.stop();
  removeBuilt(built);
});

const graph = `import { existsSync } from "node:fs";
import { StateGraph } from "waymark";
import { eventLog } from "waymark/observers/event-log";

interface Data { parts: string[]; gate?: string }
const node = (name: string) => async ({ data }: { data: Data }, { signal }: { signal: AbortSignal }) => {
  while (name === "review" && data.gate !== undefined && !existsSync(data.gate)) {
    signal.throwIfAborted();
    await new Promise((done) => setTimeout(done, 5));
  }
  return { parts: [...data.parts, name] };
};
export const graph = new StateGraph<Data>({ name: "article", observer: eventLog({ root: process.env.LOG ?? "runs" }) })
  .addNode("draft", node("draft"))
  .addNode("review", node("review"))
  .addNode("publish", node("publish"))
  .addEdge("draft", "review")
  .addEdge("review", "publish")
  .setEntryPoint("draft")
  .setExitPoint("publish");
`;

let projects = 0;

/** A user's project beside the package, with a config of this kind. */
function project(store: string, kind: "ts" | "mjs" | "json" = "ts"): string {
  const folder = join(built.folder, `project-${++projects}`);
  mkdirSync(folder);
  const types =
    /: (Data|string|AbortSignal)(?=[,)])|: \{ (data: Data|signal: AbortSignal) \}|<Data>|^interface.*\n/gm;
  const module = kind === "ts" ? "graph.ts" : "graph.mjs";
  writeFileSync(join(folder, module), kind === "ts" ? graph : graph.replace(types, ""));
  const graphs = { article: `./${module}#graph` };
  writeFileSync(
    join(folder, `waymark.config.${kind}`),
    kind === "json"
      ? JSON.stringify({ store, graphs, log: "runs" })
      : `import { graph } from "./${module}";\nexport default { store: "${store}", graphs: { article: graph }, log: "runs" };\n`,
  );
  return folder;
}

const data = (gate?: string) => JSON.stringify({ parts: [], gate });

describe.each([
  { where: "files", open: () => "file:runs", kind: "ts", format: [] },
  { where: "SQLite", open: () => "sqlite:runs.db", kind: "mjs", format: ["--json"] },
  { where: "Postgres", open: () => databases.create(), kind: "json", format: ["--json"] },
] as const)("in $where with a config in .$kind, as a process", ({ open, kind, format }) => {
  const isJson = format.length > 0;

  test(`every command works, ${isJson ? "as JSON" : "in text"}`, async () => {
    const store = await open();
    const folder = project(store, kind);
    const first = await run(built, folder, ["run", "article", "--id", "monday", "--data", data()]);
    expect(first).toMatchObject({ code: 0, err: "run monday\n" });
    const needsConfig = new Set(["graph", "resume", "replay", "recover", "log"]);
    // Those of a list may go on at the same time.
    const commands: readonly (readonly (readonly string[])[])[] = [
      [["list"], ["show", "monday"], ["history", "monday"], ["state", "monday"]],
      [["diff", "monday", "1", "2"], ["validate"], ["watch", "monday"], ["log", "monday"]],
      [["graph", "article", "--draw", "--run", "monday"], ["doctor"], ["completion", "bash"]],
      [
        ["prune", "--max-runs", "0", "--dry-run"],
        ["convert", "monday", "--to", "file:other"],
      ],
      [
        ["export", "monday", "--out", "run.jsonl"],
        ["resume", "monday"],
      ],
      [
        ["import", "run.jsonl", "--store", "file:more"],
        ["fork", "monday", "--at", "1"],
      ],
      [["replay", "monday", "--at", "1"]],
      [["rollback", "monday", "--at", "1", "--yes"]],
      [["recover"], ["repair", "--yes"]],
    ];
    for (const group of commands) {
      const ended = group.map(async (args) => {
        const config = needsConfig.has(args[0] ?? "") ? [] : ["--no-config"];
        const where = args.includes("--store") ? [] : ["--store", store];
        return { args, ...(await run(built, folder, [...args, ...config, ...where, ...format])) };
      });
      for (const { args, code, out, err } of await Promise.all(ended)) {
        expect({ args, code, err }).toMatchObject({ args, code: 0 });
        expect(out).not.toBe("");
        expect(out).not.toContain("\u001b");
        if (isJson) for (const line of out.trim().split("\n")) JSON.parse(line);
      }
    }
  }, 240_000);

  test("a killed run is shown, checked, repaired and resumed", async () => {
    const store = await open();
    const folder = project(store, kind);
    const gate = join(folder, "gate");
    const args = ["run", "article", "--id", "monday", "--data", data(gate)];
    const killed = start(built, folder, args);
    await until(() => existsSync(join(folder, "runs/monday/events.jsonl")));
    const config = (word: string | undefined) =>
      word === "resume" || word === "show" ? [] : ["--no-config", "--store", store];
    const waymark = (...words: string[]) => run(built, folder, [...words, ...config(words[0])]);
    // The run is under way, and is seen to be.
    await until(async () => /in_progress, live +draft/.test((await waymark("list")).out));
    expect((await waymark("resume", "monday")).err).toContain("is being worked on by process");
    expect((await waymark("show", "monday")).out).toMatch(/next +review/);
    expect((await waymark("history", "monday")).out).toMatch(/draft +in_progress +interval/);
    killed.child.kill("SIGKILL");
    expect((await killed.ended).signal).toBe("SIGKILL");
    // The claim of a dead process ends by itself, in a database only after a while.
    if (kind === "json") {
      await databases.query(store, "UPDATE waymark.runs SET lease_until = now()");
    }

    expect((await waymark("list")).out).toMatch(/monday +article +in_progress, stopped +draft +1/);
    expect((await waymark("show", "monday")).out).toMatch(
      /status +in_progress, stopped\n[\s\S]*next +review\n[\s\S]*continue +waymark resume monday\n/,
    );
    expect((await waymark("diff", "monday", "0", "1")).out).toContain('+ data.parts.0  "draft"');
    expect(await waymark("validate")).toMatchObject({ code: 0 });

    await corrupt(folder, store);
    const found = await waymark("validate");
    expect(found.code).toBe(1);
    expect(found.out).toMatch(/problem +corrupt +monday +2/);
    expect((await waymark("repair")).code).toBe(2);
    expect(await waymark("repair", "--yes")).toMatchObject({ code: 0 });
    expect(await waymark("validate")).toMatchObject({ code: 0 });
    writeFileSync(gate, "");
    const resumed = await waymark("resume", "monday", "--json");
    expect(resumed.code).toBe(0);
    expect(JSON.parse(resumed.out)).toMatchObject({
      status: "completed",
      data: { parts: ["draft", "review", "publish"] },
    });
  }, 240_000);
});

test("bad input ends with its exit code and one line", async () => {
  const folder = project("file:runs", "mjs");
  const wrong: readonly (readonly [number, ...string[]])[] = [
    [2, "nope"],
    [2, "list", "--nope"],
    [3, "show", "nope"],
    [3, "run", "nope"],
    [2, "run", "article", "--data", "{"],
    [2, "prune", "--max-age", "x"],
    [2, "list", "--store", "nope"],
  ];
  const all = await Promise.all(
    wrong.map(([, ...args]) => {
      const config = args[0] === "run" ? [] : ["--no-config"];
      return run(built, folder, [...args, ...config]);
    }),
  );
  expect(all.map(({ code }) => code)).toEqual(wrong.map(([code]) => code));
  for (const { out, err } of all) {
    expect(out).toBe("");
    expect(err).toMatch(/^waymark: [^\n]+\n$/);
  }
});

test("a live run is read and followed without disturbing it", async () => {
  const folder = project("file:runs");
  const gate = join(folder, "gate");
  const running = start(built, folder, ["run", "article", "--id", "monday", "--data", data(gate)]);
  await until(() => existsSync(join(folder, "runs/monday/checkpoint_0002.json")));
  const watching = start(built, folder, ["watch", "monday", "--every", "20"]);
  const following = start(built, folder, ["log", "monday", "--follow"]);
  await watching.until(/node\.start +review/);
  const before = readdirSync(join(folder, "runs/monday"));
  const looks = [
    ["list"],
    ["show", "monday"],
    ["history", "monday"],
    ["validate"],
    ["state", "monday"],
  ];
  const seen = await Promise.all(looks.map((args) => run(built, folder, args)));
  expect(seen.map(({ code }) => code)).toEqual(looks.map(() => 0));
  expect(readdirSync(join(folder, "runs/monday"))).toEqual(before);
  writeFileSync(gate, "");
  expect(await running.ended).toMatchObject({ code: 0 });
  const watched = await watching.ended;
  expect(watched.code).toBe(0);
  expect(watched.err).toBe("run monday completed after 3 steps\n");
  expect(watched.out).toMatch(/graph\.complete/);
  expect(await following.ended).toMatchObject({ code: 0 });
}, 240_000);

test("Ctrl-C stops a run, and a resume, leaving it resumable", async () => {
  const folder = project("sqlite:runs.db");
  const gate = join(folder, "gate");
  const log = () => run(built, folder, ["log", "monday", "--event", "node.start"]);
  const commands = [
    ["run", "article", "--id", "monday", "--data", data(gate)],
    ["resume", "monday"],
  ];
  for (const [index, args] of commands.entries()) {
    const running = start(built, folder, args);
    const isWaiting = async () => (await log()).out.split(/node\.start +review/).length > index + 1;
    await until(isWaiting);
    running.child.kill("SIGINT");
    const { code, err } = await running.ended;
    expect(code).toBe(130);
    expect(err).toContain("run monday was stopped (continue: waymark resume monday)");
  }
  writeFileSync(gate, "");
  expect(await run(built, folder, ["resume", "monday"])).toMatchObject({ code: 0 });
  expect((await run(built, folder, ["validate"])).code).toBe(0);
}, 240_000);

test("stdout may be closed early", async () => {
  const folder = project("file:runs");
  await run(built, folder, ["run", "article", "--id", "monday", "--data", data()]);
  const command = `"${process.execPath}" "${built.script}" log monday | head -n 1`;
  const { status, stdout, stderr } = spawnSync("bash", ["-o", "pipefail", "-c", command], {
    cwd: folder,
    encoding: "utf8",
  });
  expect(stdout).toMatch(/graph\.start/);
  expect(stderr).toBe("");
  expect(status).toBe(0);
});

test("a run continues if stderr is closed", async () => {
  const folder = project("file:runs");
  const args = ["run", "article", "--id", "monday", "--data", data()];
  const running = start(built, folder, args);
  running.child.stderr?.destroy();
  expect((await running.ended).code).toBe(0);
  expect((await run(built, folder, ["show", "monday"])).out).toMatch(/status +completed/);
});

test.runIf(existsSync("/dev/full"))(
  "a stdout that can't be written to is reported in one line",
  () => {
    const { status, stderr } = spawnSync(
      "bash",
      ["-c", `"${process.execPath}" "${built.script}" list > /dev/full`],
      { cwd: project("file:runs"), encoding: "utf8" },
    );
    expect(status).toBe(1);
    expect(stderr).toMatch(/^waymark: can't write to stdout: ENOSPC[^\n]*\n$/);
  },
);

test("handles left open by a graph do not keep the process alive", async () => {
  const folder = project("file:runs");
  writeFileSync(join(folder, "open.ts"), `${graph}\nsetInterval(() => {}, 1000);`);
  expect(await run(built, folder, ["run", "./open.ts", "--data", data()])).toMatchObject({
    code: 0,
  });
});

/** Waits until something is so. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Makes the newest checkpoint another than was written. */
async function corrupt(folder: string, store: string): Promise<void> {
  if (store.startsWith("postgres")) {
    const change = "UPDATE waymark.checkpoints SET content = content || ' '";
    await databases.query(store, `${change} WHERE sequence = 2`);
    return;
  }
  await damage(folder, store, "monday", 2);
}
