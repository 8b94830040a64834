import { expect, test } from "vitest";
import { State, StateGraph } from "waymark";
import { linear, RecordingStore, start } from "../graphs.js";
import { MortalStore } from "../nodes/nodes.js";

test("a resume is counted and saved before the first node, whatever stopped the run", async () => {
  const store = new RecordingStore();
  const controller = new AbortController();
  const go = (left: number) =>
    linear(["a", "b", "c"], {
      checkpoint: { store: new MortalStore(store, left), interval: 1, preserve: true },
    });
  const graph = go(Number.POSITIVE_INFINITY).on("node.start", ({ data }) => {
    if (data.node === "b") controller.abort();
  });
  await graph.execute(start("r"), { signal: controller.signal }).catch(() => {});
  expect(await store.load("r")).toMatchObject({ reason: "abort", resumes: 0, crashes: 0 });
  // It dies right after its resume, so the next one knows of a crash.
  await go(1)
    .resume("r")
    .catch(() => {});
  expect(await store.load("r")).toMatchObject({ reason: "resume", resumes: 1, crashes: 0 });
  const final = await go(Number.POSITIVE_INFINITY).resume("r");
  expect(final).toMatchObject({ status: "completed", resumes: 2, crashes: 1 });
  const fork = await go(Number.POSITIVE_INFINITY).fork("r", 1);
  expect(fork).toMatchObject({ resumes: 0, crashes: 0 });
});

test("a resume in the middle of a node is noted as such, and a failure stays in the history", async () => {
  const store = new RecordingStore();
  let fails = true;
  const graphOn = (left: number) =>
    new StateGraph<{ n: number }>({
      checkpoint: { store: new MortalStore(store, left), interval: 1, preserve: true },
    })
      .addNode("pay", async (_state, context) => {
        await context.once("one", () => 1);
        await context.once("two", () => 2);
        if (fails) throw new Error("no");
        return { n: 3 };
      })
      .setEntryPoint("pay")
      .setExitPoint("pay");
  await graphOn(2)
    .execute(State.create({ n: 0 }, { runId: "r" }))
    .catch(() => {});
  await graphOn(9)
    .resume("r")
    .catch(() => {});
  fails = false;
  expect(await graphOn(9).resume("r")).toMatchObject({ resumes: 2, crashes: 1 });
  expect(store.saved.map(({ reason }) => reason)).toEqual([
    ...["start", "once", "resume", "once", "failure", "complete"],
  ]);
});
