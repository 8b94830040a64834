import { expect, test } from "vitest";
import { State } from "waymark";
import { within } from "../../src/run/visit/attempts.js";

test("an action started with an aborted signal sees it at once", async () => {
  const signal = AbortSignal.abort("gone");
  expect(await within(1000, "it", signal, (inner) => inner.reason)).toBe("gone");
});

test("pauses must be a list", () => {
  const json = { ...State.create({}).toJSON(), pauses: "none" };
  expect(() => State.fromJSON(JSON.stringify(json))).toThrow(/state\.pauses must be an array/);
});
