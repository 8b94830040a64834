import { describe, expect, test } from "vitest";
import { type NodeFunction, recoverRuns, StateGraph } from "waymark";
import type { RecoverOptions } from "../../src/recovery/recover-runs.js";
import { bare, linear, RecordingStore, start, type Trail } from "../graphs.js";
import { restarted, settled, world } from "./crashes.js";

describe("an unresumable run is skipped with its error and left unchanged", () => {
  test.each<
    [
      what: string,
      change: (opened: RecoverOptions["store"]) => StateGraph<Trail, string>,
      code: string,
    ]
  >([
    [
      "a node that is gone",
      (store) =>
        linear(["x", "y"], { name: "trail", checkpoint: { store: store as never, interval: 1 } }),
      "GRAPH_NODE_UNKNOWN",
    ],
    ["a graph that does not save", () => linear(["a", "b", "c"], { name: "trail" }), "CONFIG"],
    [
      "a graph with another store",
      () =>
        linear(["a", "b", "c"], {
          name: "trail",
          checkpoint: { store: new RecordingStore(), interval: 1 },
        }),
      "CHECKPOINT_NOT_FOUND",
    ],
    [
      "a graph that is not whole",
      () => new StateGraph<Trail, string>({ name: "trail" }),
      "GRAPH_NO_NODES",
    ],
  ])("%s", async (_what, change, code) => {
    const { begin, recover, store } = world("crash");
    await begin();
    const before = store.saved.length;
    const opened = restarted(store);
    const [report] = await recover({ store: opened, graphs: [change(opened)] });
    expect(report).toMatchObject({ outcome: "skipped", reason: "it can't be resumed" });
    expect(report?.error).toMatchObject({ code });
    expect(store.saved).toHaveLength(before);
  });

  test("a checkpoint of a newer version", async () => {
    const store = new RecordingStore();
    const graphOf = (version: number, a?: NodeFunction<Trail>) =>
      linear(["a"], { version, checkpoint: { store: restarted(store), interval: 1 } }, a && { a });
    graphOf(2, () => new Promise(() => {})).execute(start("r"));
    await settled();
    const reports = await recoverRuns({ store: restarted(store), graphs: [graphOf(1)] });
    expect(reports).toMatchObject([{ outcome: "skipped", error: { code: "MIGRATION" } }]);
    expect(store.saved).toHaveLength(1);
  });

  test("a checkpoint that can't be read, in a store that can't list its runs by status", async () => {
    const { begin, graphIn, store } = world("crash");
    await begin();
    await store.save(start("broken"));
    const opened = bare(restarted(store));
    const failing = {
      ...opened,
      load: (runId: string) =>
        runId === "broken" ? Promise.reject(new Error("torn")) : store.load(runId),
    } as typeof opened;
    const reports = await recoverRuns({ store: failing, graphs: [graphIn(opened)] });
    expect(reports).toMatchObject([
      { runId: "r", outcome: "completed" },
      { runId: "broken", outcome: "skipped", reason: "its checkpoint can't be read" },
    ]);
    expect(reports[1]?.error).toEqual(new Error("torn"));
  });
});
