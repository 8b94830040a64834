import { beforeEach, expect, test, vi } from "vitest";

beforeEach(() => vi.resetModules());

/** Who calls, as seen inside an action, from a copy of the module that has not looked for a realm yet. */
async function seen(): Promise<readonly (string | null)[]> {
  const { CallScope, callers } = await import("../src/call-scope.js");
  const scope = new CallScope();
  const names = await scope.run(async () => {
    await Promise.resolve();
    return callers();
  });
  return names.filter((name) => name === scope.name);
}

test("a call inside an action names it", async () => {
  expect(await seen()).toHaveLength(1);
});

test.each<[string, () => unknown]>([
  ["has no realms", () => undefined],
  [
    "forbids realms",
    () => {
      throw new Error("realms are forbidden");
    },
  ],
  ["gives the stack as text", () => ({ runInNewContext: () => () => "at action" })],
])("a host that %s names nobody", async (_, getBuiltinModule) => {
  const module = vi
    .spyOn(process, "getBuiltinModule")
    .mockImplementation(getBuiltinModule as never);
  expect(await seen()).toEqual([]);
  module.mockRestore();
});
