import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { root } from "./pages.js";

interface Row {
  readonly name: string;
  readonly role: "floor" | "ours" | "peer" | "reference";
  readonly median: number;
  readonly isMissed?: boolean;
}

const { staleFiles, writeGuide }: Guide = await import(join(root, "bench/report/plots.mjs"));
const { writeResult }: Results = await import(join(root, "bench/report/results.mjs"));

interface Guide {
  staleFiles(project?: URL): string[];
  writeGuide(project: URL): void;
}
interface Results {
  writeResult(project: URL, result: object): void;
}

test("README and guide show what bench/results says, and nothing else", () => {
  expect(staleFiles()).toEqual([]);
});

test.each([
  ["kill, files and SQLite", "test/crash/kill.test.ts"],
  ["kill, Postgres", "test/stores/postgres/killed-server.test.ts"],
  ["kill, workers", "test/worker/kill.test.ts"],
  ["size", "test/stores/scale.test.ts"],
])("the guide says of the test %s how much it does", (name, path) => {
  const source = readFileSync(join(root, path), "utf8");
  const [, torture, usual] =
    /(?:KILLS|MANY|\[?RUNS)[^=]* =[^?;]* \? \[?([\d_]+)[^:;]* : \[?([\d_]+)/.exec(source) ?? [];
  const guide = readFileSync(join(root, "guide/how-it-is-tested.md"), "utf8");
  const row = guide.split("\n").find((line) => line.startsWith(`| ${name} |`)) ?? "";
  const figures = [...row.matchAll(/\d[\d,]*/g)].map(([figure]) => figure.replaceAll(",", "_"));
  expect(figures).toEqual([usual, torture]);
});

describe("a run of some suites", () => {
  const folder = mkdtempSync(join(tmpdir(), "waymark-"));
  const project = pathToFileURL(`${folder}/`);
  const read = (path: string): string => readFileSync(join(folder, path), "utf8");
  const plots = (): string[] =>
    readdirSync(join(folder, "guide/images")).filter((file) => file.startsWith("bench-"));

  /** What a suite would write, had it measured these medians. */
  const measured = (name: string, title: string, table: string, rows: readonly Row[]): void => {
    const floor = rows.find(({ role }) => role === "floor")?.median ?? 1;
    const ours = rows.find(({ role }) => role === "ours")?.median ?? 1;
    writeResult(project, {
      ...{ date: "2030-01-01T00:00:00.000Z", node: "v20.0.0", v8: "11", system: "linux 6" },
      ...{ cpu: "2 × Abacus", memory: "24 GB", versions: { immer: "11.0.0" } },
      ...{ name, title },
      tables: [
        {
          ...{ title: table, unit: "µs/step", rounds: 3 },
          rows: rows.map(({ isMissed, ...row }) => ({
            ...row,
            ...{ fastest: row.median, slowest: row.median },
            ...{ toFloor: row.median / floor, toOurs: row.median / ours },
            verdicts:
              isMissed === undefined
                ? []
                : [{ id: "P1", times: "floor", atMost: 2, actual: 3, ok: !isMissed }],
          })),
        },
      ],
    });
  };

  beforeAll(() => {
    for (const path of ["guide", "README.md"]) {
      cpSync(join(root, path), join(folder, path), { recursive: true });
    }
    mkdirSync(join(folder, "bench"));
    measured("engine", "P1: one step", "a cycle", [
      { name: "bare await loop", role: "floor", median: 0.25 },
      { name: "waymark, state.set", role: "ours", median: 0.5, isMissed: true },
      { name: "LangGraph.js", role: "peer", median: 617 },
    ]);
    writeGuide(project);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test("is in the tables, with the machine and the command", () => {
    const page = read("guide/performance.md");
    expect(page).toContain("Measured with 2 × Abacus, 24 GB, linux 6, Node 20.0.0 (V8 11)");
    expect(page).toContain("Packages: immer 11.0.0.");
    expect(page).toContain("`npm --prefix bench start -- engine`");
    expect(page).toContain("| **waymark, state.set** | 0.50 | 0.50–0.50 | 2 | 1 | P1 ≤ 2: missed");
    expect(page).toContain("| P1 | engine | ≤ 2 × floor | 3 | missed in 1 of 1 |");
  });

  test("is in the README as ratios, with what was missed", () => {
    expect(read("README.md")).toContain("| 0.50 µs | 2 × | 1,200 × |");
    expect(read("README.md")).toContain("0 of 1 targets");
    expect(read("guide/comparison.md")).toContain("1,200 ×");
  });

  test("is drawn", () => {
    expect(plots()).toEqual(["bench-engine-1.svg"]);
    const plot = read("guide/images/bench-engine-1.svg");
    expect(plot.match(/<rect class="(floor|waymark|peer)"/g)).toHaveLength(3);
  });

  test("leaves the results of the others", () => {
    // A suite that no page knows by name is shown, and drawn, all the same.
    measured("later", "Something new", "a table", [
      { name: "waymark", role: "ours", median: 1 },
      { name: "other", role: "peer", median: 2 },
    ]);
    writeGuide(project);
    expect(plots()).toEqual(["bench-engine-1.svg", "bench-later-1.svg"]);
    expect(read("guide/performance.md")).toContain("waymark, state.set");
    expect(read("guide/performance.md")).toContain("### Something new");
  });

  test("fails if a figure is written by hand, or a plot is left over", () => {
    expect(staleFiles(project)).toEqual([]);
    rmSync(join(folder, "bench/results/later.json"));
    expect(staleFiles(project)).toEqual(["guide/performance.md", "guide/images/bench-later-1.svg"]);
  });
});
