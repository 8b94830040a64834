import { expect, test } from "vitest";
import { Ledger, State } from "waymark";
import { ChildStore } from "../../src/nodes/child-store.js";
import type { RunContext } from "../../src/run/visit/context.js";

/** As much of a context as the store uses. */
function context(): RunContext<object> {
  const kept = new Map<string, unknown>();
  return {
    recall: (key: string) => kept.get(key),
    remember: async (key: string, value: unknown) => void kept.set(key, value),
    forget: (key: string) => void kept.delete(key),
    ledger: { merge: () => {} },
  } as unknown as RunContext<object>;
}

test("a run inside a node exists once saved, and is removed with its node", async () => {
  const outer = context();
  const store = new ChildStore(outer, () => false);
  expect(await store.list()).toEqual([]);
  await expect(store.load("child")).rejects.toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });
  await store.save(State.create({ n: 1 }, { runId: "child" }));
  expect(await store.list()).toEqual(["child"]);
  const again = new ChildStore(outer, () => false);
  expect((await again.load<{ n: number }>("child")).data.n).toBe(1);
  expect((await again.load("child")).ledger).toEqual(Ledger.empty);
  await again.delete();
  expect(again.latest()?.runId).toBe("child");
});
