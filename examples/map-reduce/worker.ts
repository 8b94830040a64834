/** One process: continues the run that a dead process left behind, or else starts it. */
import { appendFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { parallel, recoverRuns, State, StateGraph } from "waymark";
import { SqliteStore } from "waymark/stores/sqlite";
import { type Counts, countWords, documentAt, sum, total } from "./documents.js";

interface Words {
  readonly documents: readonly number[];
  readonly mapped: readonly Counts[];
  readonly counts: Counts;
}

const [path = "", diary = "", killAt = ""] = process.argv.slice(2);
/** Whether it is about to be killed: then it has time enough for that. */
let isDoomed = false;
const store = new SqliteStore({ path });

const graph = new StateGraph<Words>({
  name: "words",
  checkpoint: { store, interval: 1, preserve: true },
})
  .addNode("list", () => ({ documents: Array.from({ length: total }, (_, index) => index) }))
  .addNode(
    "map",
    parallel<Words, number, Counts>(
      (state) => state.data.documents,
      async (_state, index) => {
        await wait(isDoomed ? 60_000 : 4); // stands for reading it from somewhere
        return countWords(documentAt(index));
      },
      {
        concurrency: 8,
        merge: (_state, mapped) => ({ mapped }),
        onProgress: (completed) => {
          if (completed === Number(killAt)) isDoomed = true;
          process.send?.(completed);
        },
      },
    ),
  )
  .addNode("reduce", (state) => ({ counts: sum(state.data.mapped), mapped: [] }))
  .addEdge("list", "map")
  .addEdge("map", "reduce")
  .setEntryPoint("list")
  .setExitPoint("reduce");

// What it does, in a file that outlives it.
const write = (line: string): void => appendFileSync(diary, `${line}\n`);
graph
  .on("parallel.start", ({ data }) => write(`found ${data.completed}`))
  .on("worker.complete", ({ data }) => write(`done ${data.index}`))
  .on("checkpoint.save", () => write("saved"));

const recovered = await recoverRuns({ store, graphs: [graph] });
if (recovered.length === 0) {
  const start: Words = { documents: [], mapped: [], counts: {} };
  await graph.execute(State.create(start, { runId: "words-of-monday" }));
}
await store.close();
process.disconnect?.();
