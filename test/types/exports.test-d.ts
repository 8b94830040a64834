import { expectTypeOf, test } from "vitest";
import {
  type CheckpointConfig,
  type CheckpointStore,
  type EventMap,
  type Finding,
  type GraphConfig,
  type NodeCompleteData,
  type NodeContext,
  type ParallelOptions,
  type PauseOptions,
  parallel,
  type Reducer,
  type RunRecovery,
  recoverRuns,
  type StateGraph,
  type StreamOptions,
} from "waymark";

interface Article {
  words: number;
}

test("what a user passes to a function, or gets from one, has a name to import", () => {
  expectTypeOf<GraphConfig["checkpoint"]>().toEqualTypeOf<CheckpointConfig | undefined>();
  expectTypeOf<Parameters<StateGraph<Article>["stream"]>[1]>().toExtend<
    StreamOptions | undefined
  >();
  expectTypeOf<NodeContext["pause"]>().toBeCallableWith("review", {
    reason: "review",
  } as PauseOptions);
  expectTypeOf(recoverRuns).returns.resolves.items.toEqualTypeOf<RunRecovery>();
  expectTypeOf<ReturnType<NonNullable<CheckpointStore["verify"]>>>().toExtend<
    AsyncIterable<Finding>
  >();
  expectTypeOf<EventMap["node.complete"]>().toEqualTypeOf<NodeCompleteData>();
});

test("options and reducers can be declared before they are passed", () => {
  const options: ParallelOptions<Article, number> = {
    concurrency: 2,
    merge: (_state, lengths) => ({ words: lengths.length }),
  };
  parallel<Article, string, number>(["a", "b"], (_state, item) => item.length, options);
  const more: Reducer<number> = (current, update) => current + update;
  const config: GraphConfig<Article> = { reducers: { words: more } };
  expectTypeOf(config.reducers?.words).not.toBeNever();
});
