import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ExecutionError, type NodeFunction } from "waymark";
import { type FakeClock, useFakeClock } from "waymark/testing";
import { mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";
import { failing, graphOf } from "./retrying.js";

let clock: FakeClock;
beforeEach(() => {
  clock = useFakeClock();
});
afterEach(() => clock.restore());

describe("cancelling during the wait for a node's next attempt", () => {
  test("ends the run at once and leaves it resumable", async () => {
    const store = new RecordingStore();
    const { node, attempts } = failing(1);
    const graph = graphOf(node, { retry: {} }, store);
    const controller = new AbortController();
    const ended = rejection(graph.execute(start("r"), controller), ExecutionError);
    await clock.advance(1);
    expect(clock.waiting).toBe(1);
    controller.abort(new Error("enough"));
    expect(await ended).toMatchObject({ code: "ABORTED", cause: new Error("enough") });
    expect([attempts, clock.waiting]).toEqual([[1], 0]);
    expect(await store.load("r")).toMatchObject({ status: "in_progress", error: undefined });
    expect((await graph.resume("r")).data.trail).toEqual(["a", "b"]);
  });

  test("does not retry the node's error", async () => {
    const controller = new AbortController();
    const { node, attempts } = failing(9, () => {
      controller.abort();
      return controller.signal.reason;
    });
    const graph = graphOf(node, { retry: {} });
    expect(await rejection(graph.execute(start(), controller), ExecutionError)).toMatchObject({
      code: "ABORTED",
    });
    expect(attempts).toEqual([1]);
  });
});

test("a save that failed inside a node is not retried: the run stops", async () => {
  const store = new RecordingStore();
  store.beforeSave = ({ reason }) => {
    if (reason === "once") throw new Error("disk full");
  };
  let calls = 0;
  const seen: unknown[] = [];
  const node: NodeFunction<Trail> = async (state, context) => {
    calls++;
    await context
      .once("pay", () => "paid")
      .catch((error: unknown) => {
        seen.push(error);
        throw error;
      });
    return mark(state, context);
  };
  const error = await graphOf(node, { retry: {} }, store)
    .execute(start("r"))
    .catch((e) => e);
  expect(error).toMatchObject({ code: "CHECKPOINT_SAVE", cause: new Error("disk full") });
  expect(seen).toEqual([expect.objectContaining({ code: "CHECKPOINT_SAVE" })]);
  expect(seen[0]).toBeInstanceOf(Error);
  expect(calls).toBe(1);
});
