import { describe, expect, test } from "vitest";
import { ConfigError, recoverRuns, registerCheckpointStore, State } from "waymark";
import type { RecoverOptions } from "../../src/recovery/recover-runs.js";
import { linear, RecordingStore } from "../graphs.js";
import { configError } from "../matchers.js";
import { restarted, settled } from "./crashes.js";

describe("options", () => {
  test.each<[options: unknown, option: string]>([
    [{}, "options.store"],
    [{ store: 7, graphs: [] }, "options.store"],
    [{ store: "nowhere", graphs: [] }, "store"],
    [{ store: "memory" }, "options.graphs"],
    [{ store: "memory", graphs: [{}] }, "options.graphs[0]"],
    [{ store: "memory", graphs: { a: null } }, "options.graphs.a"],
    [{ store: "memory", graphs: [], maxAttempts: 0 }, "options.maxAttempts"],
    [{ store: "memory", graphs: [], timeoutMs: 0 }, "options.timeoutMs"],
    [{ store: "memory", graphs: [], fallbackToPrevious: 1 }, "options.fallbackToPrevious"],
    [{ store: "memory", graphs: [], concurrency: 0 }, "options.concurrency"],
    [{ store: "memory", graphs: [], signal: {} }, "options.signal"],
    [{ store: "memory", graphs: [], attempts: 3 }, "options.attempts"],
  ])("refuse %j", async (options, option) => {
    await expect(recoverRuns(options as RecoverOptions)).rejects.toEqual(configError(option));
  });

  test("refuse two graphs with one name", async () => {
    const graphs = [linear(["a"]), linear(["b"])];
    await expect(recoverRuns({ store: "memory", graphs })).rejects.toThrow(ConfigError);
    const [graph] = graphs;
    if (graph !== undefined) await recoverRuns({ store: "memory", graphs: [graph, graph] });
  });

  test("limit how many runs continue at once", async () => {
    const store = new RecordingStore();
    const dead = linear(
      ["a"],
      { checkpoint: { store: restarted(store), interval: 1 } },
      {
        a: () => new Promise(() => {}),
      },
    );
    for (let run = 0; run < 9; run++) dead.execute(State.create({ trail: [] }));
    await settled();
    let [now, most] = [0, 0];
    const opened = restarted(store);
    const graph = linear(
      ["a"],
      { checkpoint: { store: opened, interval: 1 } },
      {
        a: async (state) => {
          most = Math.max(most, ++now);
          await settled();
          now--;
          return state;
        },
      },
    );
    const reports = await recoverRuns({ store: opened, graphs: [graph], concurrency: 3 });
    expect([reports.length, most]).toEqual([9, 3]);
    expect(new Set(reports.map(({ outcome }) => outcome))).toEqual(new Set(["completed"]));
  });

  test("accept a store by its name", async () => {
    expect(await recoverRuns({ store: "memory", graphs: [] })).toEqual([]);
    registerCheckpointStore("lazy", async () => new RecordingStore());
    expect(await recoverRuns({ store: "lazy", graphs: [] })).toEqual([]);
  });
});
