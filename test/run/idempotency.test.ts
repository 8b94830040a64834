import { expect, test } from "vitest";
import { MemoryStore, type NodeFunction } from "waymark";
import { linear, mark, start, type Trail } from "../graphs.js";

test("an idempotency key is the same over retries and resumes, and another after a rollback", async () => {
  const store = new MemoryStore({ keep: 20 });
  const keys: string[] = [];
  let fails = true;
  const b: NodeFunction<Trail> = (state, context) => {
    keys.push(context.idempotencyKey);
    if (fails) throw new Error("stop");
    return mark(state, context);
  };
  const graph = linear(["a", "b"], { checkpoint: { store, interval: 1, preserve: true } }, { b });
  await graph.execute(start("r")).catch(() => {});
  fails = false;
  await graph.resume("r");
  expect(new Set(keys)).toEqual(new Set(["r:1:b"]));
  for (const again of [
    () => graph.rollback("r", 1).then(() => graph.resume("r")),
    () => graph.rollback("r", 1).then(() => graph.resume("r")),
    () => graph.resume("r", { step: 1 }),
  ]) {
    await again();
  }
  expect(new Set(keys).size).toBe(4);
  expect(new Set(keys.map((key) => key.split("@")[0]))).toEqual(new Set(["r:1:b"]));
});
