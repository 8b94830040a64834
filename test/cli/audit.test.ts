import { readFileSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { articleRun, project, waymark } from "./harness.js";

const observer = `observer: (event) => {
  require("node:fs").appendFileSync(import.meta.dirname + "/audit.jsonl", JSON.stringify(event) + "\\n");
}`;

/** The events that a command has caused, each as `type runId actor: purpose`. */
async function eventsOf(folder: string, ...args: string[]): Promise<readonly string[]> {
  const file = join(folder, "audit.jsonl");
  writeFileSync(file, "");
  const { code, err } = await waymark(folder, ...args);
  if (code !== 0) throw new Error(err);
  const lines = readFileSync(file, "utf8").trim().split("\n");
  return [...new Set(lines)].map((line) => {
    const { type, runId, data } = JSON.parse(line);
    return `${type} ${runId} ${data.actor}: ${data.purpose}`;
  });
}

test("loads, saves, prunes and deletes carry their actor", async () => {
  const folder = project("file:.waymark", observer);
  await articleRun(folder);
  const me = userInfo().username;
  expect(await eventsOf(folder, "state", "monday")).toEqual([
    `checkpoint.load monday ${me}: waymark state`,
  ]);
  expect(await eventsOf(folder, "show", "monday")).toEqual([
    `checkpoint.load monday ${me}: waymark show`,
  ]);
  const back = ["rollback", "monday", "--at", "1", "--yes", "--actor", "ada"];
  expect((await eventsOf(folder, ...back)).at(-1)).toBe(
    "checkpoint.save monday ada: waymark rollback",
  );
  const resumed = await eventsOf(folder, "resume", "monday", "--actor", "ada");
  // The State is loaded once: by the graph.
  const loads = resumed.filter((event) => event.startsWith("checkpoint.load"));
  expect(loads).toEqual(["checkpoint.load monday ada: waymark resume"]);
  expect(resumed).toContain("checkpoint.save monday ada: waymark resume");
  await articleRun(folder, "tuesday");
  expect(await eventsOf(folder, "delete", "tuesday", "--yes", "--actor", "ada")).toEqual([
    "checkpoint.delete tuesday ada: waymark delete",
  ]);
  expect(await eventsOf(folder, "prune", "--max-runs", "0", "--yes")).toEqual([
    `checkpoint.delete monday ${me}: waymark prune`,
  ]);
});

test("a graph's own observer sees who resumed it", async () => {
  const folder = project();
  writeFileSync(
    join(folder, "graph.ts"),
    `import { appendFileSync } from "node:fs";
import { StateGraph } from "waymark";
export const graph = new StateGraph({
  name: "seen",
  observer: ({ type, data }) => appendFileSync(import.meta.dirname + "/seen", type + " " + data.actor + "\\n"),
}).addNode("one", (state) => state).setEntryPoint("one").setExitPoint("one");`,
  );
  await waymark(folder, "run", "./graph.ts", "--actor", "ada");
  const seen = readFileSync(join(folder, "seen"), "utf8");
  expect(seen).toContain("checkpoint.save ada\n");
});

test("an invalid observer is refused", async () => {
  const folder = project("file:.waymark", "observer: 1");
  const { code, err } = await waymark(folder, "list");
  expect(code).toBe(2);
  expect(err).toContain("observer must be a function or an object with onEvent; got 1");
});
