import { describe, expect, test } from "vitest";
import { type NodeFunction, pause, recoverRuns, State } from "waymark";
import { linear, mark, RecordingStore, start, type Trail } from "../graphs.js";
import { restarted, settled, world } from "./crashes.js";

describe("unfinished runs", () => {
  test("a run whose process died continues after its last save", async () => {
    const { begin, recover, ran, store } = world("crash");
    await begin();
    expect(await recover()).toEqual([
      { runId: "r", graph: "trail", outcome: "completed", attempts: 1, fellBack: false },
    ]);
    expect(ran).toEqual(["a", "b", "b", "c"]);
    expect(store.log).toEqual([
      "start:@0",
      "interval:a@1",
      "recovery:a@1",
      "interval:b@2",
      "complete:c@3",
    ]);
    expect((await store.load("r")).toJSON()).not.toHaveProperty("recovery");
  });

  test("a failed run is retried, keeping its failure until it progresses", async () => {
    const { begin, recover, store } = world("throw", "crash", "work");
    await begin();
    await recover();
    const left = await store.load("r");
    expect(left).toMatchObject({ status: "failed", error: { message: "boom" } });
    expect(left.toJSON().recovery).toEqual({ attempts: 1, step: 1, results: 0 });
    expect(await recover()).toMatchObject([{ outcome: "completed", attempts: 2 }]);
  });

  test("a run that never started continues from its first node", async () => {
    const { recover, store, ran } = world();
    const graph = { name: "trail", version: 0, fingerprint: "" };
    await store.save(State.fromJSON<Trail>({ ...start("r").toJSON(), graph }));
    expect((await store.load("r")).status).toBe("pending");
    expect(await recover()).toMatchObject([{ runId: "r", outcome: "completed" }]);
    expect(ran).toEqual(["a", "b", "c"]);
  });

  test("completed runs are left alone, and paused ones keep waiting", async () => {
    const store = new RecordingStore();
    const config = { name: "trail", checkpoint: { store, interval: 1, preserve: true } };
    await linear(["a"], config).execute(start("completed"));
    const pausing: NodeFunction<Trail> = (state) => pause(state, { reason: "wait", ask: "?" });
    const graph = linear(["a"], config, { a: pausing });
    await graph.execute(start("paused"));
    const before = store.saved.length;
    expect(await recoverRuns({ store: restarted(store), graphs: [graph] })).toEqual([]);
    expect(store.saved).toHaveLength(before);
  });

  test("a run that reaches a pause is reported as paused", async () => {
    const store = new RecordingStore();
    let crash = true;
    const node: NodeFunction<Trail> = (state) =>
      crash ? new Promise(() => {}) : pause(state, { reason: "wait" });
    const config = { checkpoint: { store, interval: 1 } };
    linear(["a", "b"], config, { a: node }).execute(start("r"));
    await settled();
    crash = false;
    const opened = restarted(store);
    const graph = linear(["a", "b"], { checkpoint: { store: opened, interval: 1 } }, { a: node });
    expect(await recoverRuns({ store: opened, graphs: [graph] })).toMatchObject([
      { outcome: "paused" },
    ]);
    expect(await recoverRuns({ store: opened, graphs: [graph] })).toEqual([]);
  });

  test("a run that was resumed from a pause and died continues, with its answer", async () => {
    const store = new RecordingStore();
    let crash = true;
    const a: NodeFunction<Trail> = async (_state, context) => {
      const answer = await context.pause("ok", { reason: "wait" });
      return crash ? new Promise(() => {}) : { trail: [`answer ${answer}`] };
    };
    const graph = linear(["a"], { checkpoint: { store, interval: 1, preserve: true } }, { a });
    await graph.execute(start("r"));
    graph.resume("r", { input: 7 });
    await settled();
    crash = false;
    await recoverRuns({ store: restarted(store), graphs: [graph] });
    expect((await store.load<Trail>("r")).data.trail).toEqual(["answer 7"]);
  });

  test("a run that died at an exit point with its pause answered completes", async () => {
    const store = new RecordingStore();
    const a: NodeFunction<Trail> = (state) => pause(state, { reason: "wait", ask: "?" });
    const graph = linear(["a"], { checkpoint: { store, interval: 1, preserve: true } }, { a });
    await graph.execute(start("r"));
    store.afterSave = () => {
      throw new Error("crash");
    };
    await graph.resume("r", { input: { trail: ["x"] } }).catch(() => {});
    store.afterSave = () => {};
    const opened = restarted(store);
    expect(await recoverRuns({ store: opened, graphs: [graph] })).toMatchObject([
      { outcome: "completed" },
    ]);
    expect(await store.load<Trail>("r")).toMatchObject({
      status: "completed",
      data: { trail: ["x"] },
    });
  });

  test("a run does not repeat the results of once in its node", async () => {
    const store = new RecordingStore();
    const calls: string[] = [];
    let crash = true;
    const a: NodeFunction<Trail> = async (state, context) => {
      await context.once("pay", () => calls.push("pay"));
      if (crash) await new Promise(() => {});
      return mark(state, context);
    };
    const config = { checkpoint: { store, interval: 1, preserve: true } };
    linear(["a"], config, { a }).execute(start("r"));
    await settled();
    crash = false;
    const opened = restarted(store);
    const graph = linear(["a"], { checkpoint: { store: opened, interval: 1 } }, { a });
    await recoverRuns({ store: opened, graphs: [graph] });
    expect(calls).toEqual(["pay"]);
  });
});

describe("during a recovery", () => {
  test("a run that has ended meanwhile is left alone", async () => {
    const { begin, graphIn, store } = world();
    await begin();
    const before = store.saved.length;
    const [run] = await store.runs();
    const opened = restarted(store);
    const late = { ...opened, runs: async () => (run === undefined ? [] : [run]) };
    expect(await recoverRuns({ store: late, graphs: [graphIn(opened)] })).toMatchObject([
      { outcome: "skipped", reason: "it has since ended or paused" },
    ]);
    expect(store.saved).toHaveLength(before);
  });

  test("a failing store is reported with its run, and the others continue", async () => {
    const { begin, recover, store, graphIn } = world("crash", "throw");
    await begin();
    await graphIn(restarted(store))
      .execute(start("other"))
      .catch(() => {});
    store.beforeSave = ({ runId, reason }) => {
      if (runId === "r" && reason === "interval") throw new Error("disk full");
    };
    const reports = await recover();
    expect(reports.map(({ outcome }) => outcome).sort()).toEqual(["completed", "failed"]);
    const failed = reports.find(({ runId }) => runId === "r");
    expect(failed).toMatchObject({ attempts: 1, error: { code: "CHECKPOINT_SAVE" } });
  });

  test("a run whose attempt can't be saved is skipped", async () => {
    const { begin, recover, store, ran } = world("crash");
    await begin();
    store.beforeSave = () => {
      throw new Error("read-only");
    };
    const [report] = await recover();
    expect(report).toMatchObject({ error: { code: "CHECKPOINT_SAVE" } });
    expect(ran).toEqual(["a", "b"]);
  });

  test("a fork of a retried run counts from zero", async () => {
    const { begin, recover, store, graphIn } = world("throw", "throw");
    await begin();
    await recover();
    expect((await store.load("r")).toJSON().recovery).toMatchObject({ attempts: 1 });
    const graph = graphIn(restarted(store));
    expect((await graph.fork("r", 1)).toJSON().recovery).toBeUndefined();
    expect((await graph.rollback("r", 1)).toJSON().recovery).toBeUndefined();
  });

  test("the events of a resume are emitted", async () => {
    const { begin, store, graphIn } = world("crash");
    await begin();
    const opened = restarted(store);
    const graph = graphIn(opened);
    const told: string[] = [];
    graph.on("checkpoint.save", ({ data }) => told.push(`save ${data.reason}`));
    graph.on("checkpoint.resume", ({ data }) => told.push(`resume ${data.resumeNode}`));
    await recoverRuns({ store: opened, graphs: [graph] });
    expect(told).toEqual(["save recovery", "resume b", "save interval", "save complete"]);
  });
});

describe("the graph of a run", () => {
  test("is known by its name, and a run of another graph is reported and left alone", async () => {
    const { begin, recover, graphIn, store } = world("crash");
    await begin();
    const before = store.saved.length;
    const opened = restarted(store);
    expect(await recover({ store: opened, graphs: [graphIn(opened, "other")] })).toEqual([
      {
        runId: "r",
        graph: "trail",
        outcome: "skipped",
        attempts: 0,
        fellBack: false,
        reason: 'graph "trail" is not among those given',
      },
    ]);
    expect(store.saved).toHaveLength(before);
  });

  test("may also be given by a key, for a renamed graph", async () => {
    const { begin, recover, graphIn, store } = world("crash");
    await begin();
    const opened = restarted(store);
    const graphs = { trail: graphIn(opened, "new name") };
    expect(await recover({ store: opened, graphs })).toMatchObject([{ outcome: "completed" }]);
  });

  test("is the right one of several", async () => {
    const store = new RecordingStore();
    const names = ["one", "two"];
    const [dead, opened] = [restarted(store), restarted(store)];
    const graphOf = (name: string, opened: typeof dead, a?: NodeFunction<Trail>) =>
      linear(["a"], { name, checkpoint: { store: opened, interval: 1 } }, a && { a });
    for (const name of names) graphOf(name, dead, () => new Promise(() => {})).execute(start(name));
    await settled();
    const ran: string[] = [];
    const graphs = names.map((name) =>
      graphOf(name, opened, (state) => {
        ran.push(`${name} ${state.runId}`);
        return state;
      }),
    );
    await recoverRuns({ store: opened, graphs });
    expect(ran.sort()).toEqual(["one one", "two two"]);
  });
});
