import { expect, test } from "vitest";
import { State } from "waymark";
import { within } from "../../src/run/timeout.js";

test("an action that starts cancelled sees it at once", async () => {
  const signal = AbortSignal.abort("gone");
  expect(await within(1000, "it", signal, (inner) => inner.reason)).toBe("gone");
});

test("pauses that are no list are refused", () => {
  const json = { ...State.create({}).toJSON(), pauses: "none" };
  expect(() => State.fromJSON(JSON.stringify(json))).toThrow(/state\.pauses must be an array/);
});
