import { describe, expect, test } from "vitest";
import { State } from "waymark";
import { fields, newIdentity, newProgress, unsaved } from "../../src/state/record.js";
import { recordOf } from "../../src/state/state.js";
import { linear, start } from "../graphs.js";

/** The keys of the fields of a part, in the order of the table. */
const keysOf = (part: string): string[] =>
  fields.flatMap((field) => (field.part === part ? [field.key] : []));

describe("the records that are written out for speed have the fields of the table, in its order", () => {
  test("a new one", () => {
    expect(Object.keys(newIdentity("r", {}))).toEqual(keysOf("identity"));
    expect(Object.keys(newProgress())).toEqual(keysOf("progress"));
    expect(Object.keys(unsaved)).toEqual([...keysOf("saved"), "bytes"]);
  });

  test("with the empty values of the table", () => {
    const progress = newProgress();
    for (const { part, key, hasEmpty, empty } of fields) {
      if (part === "progress" && hasEmpty) expect(Reflect.get(progress, key), key).toBe(empty);
    }
  });

  test("one of a step, and one from JSON", async () => {
    const final = await linear(["a", "b"]).execute(start("r"));
    expect(Object.keys(recordOf(final).progress)).toEqual(keysOf("progress"));
    const loaded = recordOf(State.fromJSON(JSON.stringify(final)));
    expect(Object.keys(loaded.progress)).toEqual(keysOf("progress"));
    expect(Object.keys(loaded.identity)).toEqual(keysOf("identity"));
  });
});
