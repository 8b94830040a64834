import type { StandardSchema } from "waymark";
import type { StandardResult } from "../../src/state/schema.js";

/** A Standard Schema out of a function that gives the value, or what is wrong. */
export function schema(
  validate: (value: unknown) => StandardResult<unknown> | Promise<StandardResult<unknown>>,
): StandardSchema {
  return { "~standard": { version: 1, vendor: "test", validate } };
}

/** An object with a `yes` that is true or false; a text for it is turned into that. */
export const decision = schema((value) => {
  const yes: unknown = (value as { yes?: unknown } | null)?.yes;
  if (typeof yes === "boolean") return { value: { yes } };
  if (yes === "true" || yes === "false") return { value: { yes: yes === "true" } };
  return {
    issues: [
      { message: "wants true or false", path: ["yes"] },
      { message: "see the manual", path: [{ key: "help" }, 0] },
      { message: "all wrong" },
    ],
  };
});

/** A number, looked up somewhere. */
export const amount = schema(async (value) => {
  await new Promise(setImmediate);
  return typeof value === "number" ? { value } : { issues: [{ message: "wants a number" }] };
});
