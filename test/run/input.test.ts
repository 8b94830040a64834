import { describe, expect, test } from "vitest";
import {
  ConfigError,
  ExecutionError,
  type NodeOptions,
  pause,
  type State,
  StateGraph,
} from "waymark";
import { RecordingStore, rejection } from "../graphs.js";
import { configError, schemaError, serializationError } from "../matchers.js";
import { asking, type Draft, draft, graphOf } from "./drafts.js";
import { amount, decision, schema } from "./schemas.js";

describe("invalid input leaves the run paused and resumable", () => {
  /** The error of a resume with this input; then a good one. */
  async function refused(
    input: unknown,
    pausing = asking,
    options: NodeOptions<Draft> = {},
    good: unknown = { yes: true },
  ): Promise<unknown> {
    const { graph, store, ran } = graphOf(pausing, new RecordingStore(), options);
    await graph.execute(draft());
    const before = store.saved.length;
    const error = await graph.resume("r", { input }).catch((thrown: unknown) => thrown);
    expect([store.saved.length, ran]).toEqual([before, ["write"]]);
    expect(await store.load("r")).toMatchObject({ status: "paused" });
    expect((await graph.resume("r", { input: good })).status).toBe("completed");
    return error;
  }

  test("if it is missing", async () => {
    expect(String(await refused(undefined))).toBe(
      'ConfigError: input is missing: the run is paused for review ("Publish?"). Call resume(runId, { input })',
    );
  });

  test("if it can't be merged", async () => {
    expect(await refused("yes")).toEqual(
      configError(
        "input",
        'must be an object to merge into the data; got "yes": or give the pause',
      ),
    );
  });

  test("if a checkpoint can't hold it", async () => {
    expect(await refused({ note: { send: () => {} } })).toEqual(
      serializationError("input.note.send"),
    );
  });

  test("if the schema refuses it, with all issues", async () => {
    const error = await refused({ yes: "perhaps" }, asking, { input: decision });
    expect(String(error)).toBe(
      "SchemaError: input does not fit its schema: " +
        "yes: wants true or false; help.0: see the manual; all wrong",
    );
  });

  test("if it is missing and the schema requires it though the node asked nothing", async () => {
    const quiet = (state: State<Draft>) => pause(state, { reason: "cool down" });
    expect(await refused(undefined, quiet, { input: decision })).toEqual(
      schemaError("input", "yes: wants true or false"),
    );
  });

  test("if an asynchronous schema refuses it", async () => {
    const noting = (state: State<Draft>) =>
      pause(state, { reason: "how many", ask: true, into: "note" });
    expect(await refused("many", noting, { input: amount }, 7)).toEqual(
      schemaError("input", "wants a number"),
    );
  });

  test("if the schema throws", async () => {
    const broken = schema((value) => {
      if (value === "bad") throw new TypeError("a bug in the schema");
      return { value };
    });
    expect(await refused("bad", asking, { input: broken })).toEqual(
      new TypeError("a bug in the schema"),
    );
  });

  test("if the store is down", async () => {
    const { graph, store } = graphOf(asking);
    await graph.execute(draft());
    store.beforeSave = () => {
      throw new Error("down");
    };
    const resuming = graph.resume("r", { input: { yes: true } });
    await expect(resuming).rejects.toMatchObject({ code: "CHECKPOINT_SAVE" });
    store.beforeSave = () => {};
    expect((await graph.resume("r", { input: { yes: true } })).status).toBe("completed");
  });
});

test("the schema's output is used, not its input", async () => {
  const { graph } = graphOf(asking, new RecordingStore(), { input: decision });
  await graph.execute(draft());
  expect((await graph.resume("r", { input: { yes: "true", more: 1 } })).data).toEqual({
    text: "Cairns",
    yes: true,
  });
});

describe("unexpected input", () => {
  test("is an error that reports the run's status", async () => {
    const store = new RecordingStore();
    let fail = true;
    const graph = new StateGraph<Draft>({ checkpoint: { store, interval: 1, preserve: true } })
      .addNode("x", (state) => {
        if (fail) throw new Error("boom");
        return state;
      })
      .setEntryPoint("x")
      .setExitPoint("x");
    await rejection(graph.execute(draft()), ExecutionError);
    const problem = (status: string) =>
      `input was given, but run "r" is not paused: it is ${status}`;
    const resuming = graph.resume("r", { input: 1 });
    await expect(resuming).rejects.toEqual(configError("input", problem("failed")));
    fail = false;
    await graph.resume("r");
    const again = await rejection(graph.resume("r", { input: 1 }), ConfigError);
    expect(again.message).toBe(problem("completed"));
  });
});
