import { expect, test } from "vitest";
import { CheckpointConflictError } from "waymark";
import { errorTable } from "../../../src/errors/table.js";
import { json, newFolder, waymark } from "../harness.js";

test.each(Object.keys(errorTable))("%s is explained by the guide", async (code) => {
  const { code: exit, out } = await waymark(newFolder(), "explain", code);
  expect(exit).toBe(0);
  expect(out).toMatch(new RegExp(`^${code}\n\n\\S`));
  expect(out).not.toMatch(/^#/m);
});

test("an error's help link, or another case, names its code", async () => {
  const { help } = new CheckpointConflictError("a", 1, 2);
  const text = (await waymark(newFolder(), "explain", "CHECKPOINT_CONFLICT")).out;
  expect((await waymark(newFolder(), "explain", help)).out).toBe(text);
  expect((await waymark(newFolder(), "explain", "checkpoint_conflict")).out).toBe(text);
  expect(await json(newFolder(), "explain", help)).toMatchObject({
    code: "CHECKPOINT_CONFLICT",
    help,
  });
});

test("without a code all are listed, and an unknown one is refused", async () => {
  const codes = Object.keys(errorTable);
  expect((await waymark(newFolder(), "explain")).out).toBe(`${codes.join("\n")}\n`);
  expect(await json(newFolder(), "explain")).toEqual(codes);
  const { code, err } = await waymark(newFolder(), "explain", "NOPE");
  expect(code).toBe(3);
  expect(err).toBe('waymark: there is no error code "NOPE" (waymark explain lists them)\n');
});
