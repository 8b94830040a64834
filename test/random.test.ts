import { expect, test } from "vitest";
import { State } from "waymark";
import { newId, random, useChance } from "../src/random.js";

test("a source of chance that is put in place decides numbers and ids", () => {
  const restore = useChance({ random: () => 0.25, newId: () => "the id" });
  try {
    expect([random(), newId(), State.create({}).runId]).toEqual([0.25, "the id", "the id"]);
  } finally {
    restore();
  }
  expect(newId()).not.toBe(newId());
});
