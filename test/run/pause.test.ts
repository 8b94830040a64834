import { describe, expect, test } from "vitest";
import { ExecutionError, pause, State, StateGraph } from "waymark";
import { linear, RecordingStore, rejection, start } from "../graphs.js";
import { configError, serializationError } from "../matchers.js";
import { asking, type Draft, draft, graphOf } from "./drafts.js";

describe("a node that returns a pause", () => {
  test("has completed; the run is saved as paused and waits", async () => {
    const { graph, ran, store } = graphOf(asking);
    const paused = await graph.execute(draft());
    expect(paused).toMatchObject({ status: "paused", step: 1, checkpointNode: "write" });
    expect(paused.data.text).toBe("Cairns");
    expect(paused.pauses).toEqual([{ name: "", reason: "review", ask: "Publish?" }]);
    expect(ran).toEqual(["write"]);
    const saved = await store.load<Draft>("r");
    expect(saved.toJSON()).toEqual(paused.toJSON());
    expect(State.fromJSON(JSON.stringify(saved)).pauses).toEqual(paused.pauses);
    expect(saved.reason).toBe("pause");
  });

  test("emits graph.pause, and no end", async () => {
    const { graph } = graphOf(asking);
    const types: string[] = [];
    graph.on("*", ({ type }) => types.push(type));
    graph.on("graph.pause", ({ data }) => types.push(JSON.stringify(data)));
    await graph.execute(draft());
    expect(types.slice(-4)).toEqual([
      "node.complete",
      "checkpoint.save",
      '{"node":"write","step":1,"reason":"review"}',
      "graph.pause",
    ]);
  });

  test("does not run again: the input is merged into the data and the run continues", async () => {
    const { graph, ran, store } = graphOf(asking);
    await graph.execute(draft());
    const final = await graph.resume("r", { input: { yes: true } });
    expect(final).toMatchObject({ status: "completed", step: 2, pauses: [] });
    expect(final.data).toEqual({ text: "Cairns", yes: true });
    expect(ran).toEqual(["write", "publish"]);
    expect(store.log.slice(-3)).toEqual(["pause:write@1", "input:write@1", "complete:publish@2"]);
  });

  test("with `into` makes the input the value of a key, whatever it is", async () => {
    for (const input of ["fine", 0, null, [1], { deep: true }]) {
      const { graph } = graphOf((state) => pause(state, { reason: "r", ask: 1, into: "note" }));
      await graph.execute(draft());
      expect((await graph.resume("r", { input })).data.note).toEqual(input);
    }
  });

  test("can ask anything that a checkpoint can hold", async () => {
    const ask = { choices: new Set(["a"]), by: new Date(0), limit: 5n };
    const { graph, store } = graphOf((state) => pause(state, { reason: "choose", ask }));
    await graph.execute(draft());
    const loaded = State.fromJSON(JSON.stringify(await store.load("r")));
    expect(loaded.pauses[0]?.ask).toEqual(ask);
  });

  test("and asks nothing needs no input, but accepts one", async () => {
    for (const input of [undefined, { yes: true }]) {
      const { graph, store } = graphOf((state) => pause(state, { reason: "cool down" }));
      await graph.execute(draft());
      const final = await graph.resume("r", { input });
      expect(final.data).toEqual({ text: "Cairns", ...input });
      expect(store.log.at(-2)).toBe(`${input ? "input" : "resume"}:write@1`);
    }
  });

  test("at an exit point completes the run with its input", async () => {
    for (const preserve of [true, false]) {
      const store = new RecordingStore();
      const graph = new StateGraph<Draft>({ checkpoint: { store, interval: 1, preserve } })
        .addNode("only", asking)
        .setEntryPoint("only")
        .setExitPoint("only");
      expect((await graph.execute(draft())).status).toBe("paused");
      const types: string[] = [];
      graph.on("*", ({ type }) => types.push(type));
      const final = await graph.resume("r", { input: { yes: true } });
      expect(final).toMatchObject({ status: "completed", step: 1, visits: { only: 1 } });
      expect(final.data.yes).toBe(true);
      expect(types.at(-1)).toBe("graph.complete");
      expect(await store.list()).toEqual(preserve ? ["r"] : []);
      if (preserve) expect(await store.load("r")).toMatchObject({ status: "completed" });
    }
  });

  test("at an exit point loses nothing in a crash after the input was accepted", async () => {
    const store = new RecordingStore();
    const graph = new StateGraph<Draft>({ checkpoint: { store, interval: 1, preserve: true } })
      .addNode("only", asking)
      .setEntryPoint("only")
      .setExitPoint("only");
    await graph.execute(draft());
    store.afterSave = ({ reason }) => {
      if (reason === "input") throw new Error("crash");
    };
    await graph.resume("r", { input: { yes: true } }).catch(() => {});
    store.afterSave = () => {};
    const final = await graph.resume("r");
    expect([final.status, final.data.yes]).toEqual(["completed", true]);
    expect(await store.load("r")).toMatchObject({ status: "completed" });
  });
});

describe("an invalid pause", () => {
  test("without checkpointing is a clear error of the node", async () => {
    const graph = new StateGraph<Draft>()
      .addNode("x", asking, { retry: { initialInterval: 0 } })
      .setEntryPoint("x")
      .setExitPoint("x");
    const error = await rejection(graph.execute(draft()), ExecutionError);
    expect(error.cause).toEqual(
      configError(
        "config.checkpoint.interval",
        /is 0, so a run that pauses \(review\) could never continue: set it to 1 or more/,
      ),
    );
  });

  test("that can't be saved fails the run, even if other failed saves would not", async () => {
    const store = new RecordingStore();
    store.beforeSave = ({ status }) => {
      if (status === "paused") throw new Error("disk full");
    };
    const graph = new StateGraph<Draft>({
      checkpoint: { store, interval: 1, onSaveError: "continue" },
    })
      .addNode("x", asking)
      .setEntryPoint("x")
      .setExitPoint("x");
    await expect(graph.execute(draft())).rejects.toMatchObject({ code: "CHECKPOINT_SAVE" });
  });

  test.each<[options: unknown, error: unknown]>([
    [{}, configError("pause.reason")],
    [{ reason: "" }, configError("pause.reason")],
    [{ reason: "r", into: 7 }, configError("pause.into")],
    [{ reason: "r", question: "?" }, configError("pause.question")],
    [{ reason: "r", ask: { send: () => {} } }, serializationError("pause.ask.send")],
    [undefined, configError("pause")],
  ])("with options %j is refused", (options, error) => {
    expect(() => pause(draft(), options as never)).toThrow(error as Error);
  });

  test("without a State is refused", () => {
    expect(() => pause({} as never, { reason: "r" })).toThrow(configError("state") as Error);
  });
});

test("a paused run can be forked and rolled back, and each continues on its own", async () => {
  const { graph, store, ran } = graphOf(asking);
  const { checkpointId } = await graph.execute(draft());
  const fork = await graph.fork("r", checkpointId, { text: "Forked" });
  expect(fork).toMatchObject({ status: "paused", reason: "fork" });
  expect(fork.pauses).toHaveLength(1);
  await expect(graph.resume(fork.runId)).rejects.toEqual(configError("input", "is missing"));
  const forked = await graph.resume(fork.runId, { input: { yes: false } });
  expect(forked.data).toEqual({ text: "Forked", yes: false });
  await graph.resume("r", { input: { yes: true } });
  const back = await graph.rollback("r", { checkpointId });
  expect(back).toMatchObject({ status: "paused", reason: "rollback", step: 1 });
  expect((await graph.resume("r", { input: { yes: false } })).data.yes).toBe(false);
  const begun = await graph.rollback("r", 0);
  expect(begun).toMatchObject({ status: "pending", pauses: [] });
  expect((await graph.resume("r")).status).toBe("paused");
  expect(ran.filter((name) => name === "write")).toHaveLength(2);
  expect((await store.load("r")).status).toBe("paused");
});

test("resumeOrStart of a paused run reports the missing input", async () => {
  const { graph } = graphOf(asking);
  await graph.execute(draft());
  await expect(graph.resumeOrStart(draft())).rejects.toEqual(configError("input", "is missing"));
});

test("a run paused at its exit point completes with the input and keeps it", async () => {
  const store = new RecordingStore();
  const graph = linear(
    ["a"],
    { checkpoint: { store, interval: 1, preserve: true } },
    { a: (state) => pause(state, { reason: "review", into: "trail" }) },
  );
  await graph.execute(start("r"));
  const final = await graph.resume("r", { input: "yes" });
  expect([final.status, final.reason, final.checkpointId]).toEqual([
    "completed",
    "complete",
    (await graph.history("r"))[0]?.checkpointId,
  ]);
});
