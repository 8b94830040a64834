import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { ConfigError, type ErrorCode, GraphError, isWaymarkError, WaymarkError } from "waymark";
import { errorTable } from "../../src/errors/table.js";
import { root } from "./pages.js";

const codes = Object.keys(errorTable);
const page = readFileSync(join(root, "guide/troubleshooting.md"), "utf8");
const reference = readFileSync(join(root, "guide/reference.md"), "utf8");
const headings = [...page.matchAll(/^### ([A-Z_]+)$/gm)].map((match) => match[1] ?? "");

describe("the troubleshooting page", () => {
  test("has a section for every error code, and for no other", () => {
    expect(codes.length).toBeGreaterThan(30);
    expect(headings.toSorted()).toEqual(codes.toSorted());
  });

  test.each(codes)("%s says what to do", (code) => {
    const [, section = ""] = page.split(`### ${code}\n`);
    expect(section.split("\n#")[0]?.trim()).not.toBe("");
  });
});

test("the reference lists every error code with its class, and no other", () => {
  const [, table = ""] = /^## Errors$(.*?)^## /ms.exec(reference) ?? [];
  const listed = [...table.matchAll(/^\| `(\w+)`.*?\| (.*) \|$/gm)].flatMap(([, name, cell = ""]) =>
    [...cell.matchAll(/`([A-Z]+(?:_[A-Z]+)*)`/g)].map(([, code]) => [code, name]),
  );
  const expected = Object.entries(errorTable).map(([code, facts]) => [code, facts.class]);
  expect(listed.toSorted()).toEqual(expected.toSorted());
});

describe("an error's help", () => {
  test.each(codes)("of %s is the address of its section", (code) => {
    const error = new WaymarkError(code as ErrorCode, "wrong");
    expect(error.help).toBe(`waymark/guide/troubleshooting.md#${code.toLowerCase()}`);
  });

  test("is printed wherever an error is", () => {
    expect(inspect(new GraphError("GRAPH_NO_EXIT", "no exit"))).toContain(
      "help: 'waymark/guide/troubleshooting.md#graph_no_exit'",
    );
    expect(JSON.stringify(new ConfigError("keep", "is wrong"))).toContain("#config");
    expect(isWaymarkError(new ConfigError("keep", "is wrong"))).toBe(true);
  });
});
