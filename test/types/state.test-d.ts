import { describe, expectTypeOf, test } from "vitest";
import {
  type CheckpointNotFoundError,
  type CheckpointSaveError,
  type ExecutionError,
  type GraphError,
  isWaymarkError,
  MemoryStore,
  type RunStatus,
  State,
  type WaymarkError,
} from "waymark";

interface Article {
  topic: string;
  words?: number;
  tags: string[];
  when: Date;
  index: Map<string, { n: number }>;
}

declare const state: State<Article>;

describe("create", () => {
  test("takes its type from the data, or from the caller", () => {
    expectTypeOf(State.create({ a: 1 })).toEqualTypeOf<State<{ a: number }>>();
    expectTypeOf(State.create<{ a?: string }>({})).toEqualTypeOf<State<{ a?: string }>>();
    interface Data {
      a: number;
    }
    const data: Data = { a: 1 };
    expectTypeOf(State.create(data, { runId: "x" })).toEqualTypeOf<State<Data>>();
  });

  test("refuses what can't be data or options", () => {
    // @ts-expect-error no object
    State.create(5);
    // @ts-expect-error a key is missing
    State.create<Article>({ topic: "x" });
    // @ts-expect-error no such option
    State.create({}, { runID: "x" });
    // @ts-expect-error an id is a string
    State.create({}, { runId: 5 });
  });
});

describe("data", () => {
  test("is readonly to the bottom", () => {
    expectTypeOf(state.data.topic).toBeString();
    expectTypeOf(state.data.tags).toEqualTypeOf<readonly string[]>();
    // @ts-expect-error readonly
    state.data.topic = "x";
    // @ts-expect-error readonly
    state.data.tags.push("x");
    // @ts-expect-error readonly
    state.data.index.set("x", { n: 1 });
    // @ts-expect-error readonly
    state.data = { ...state.data };
  });

  test("and so is the rest", () => {
    expectTypeOf(state.status).toEqualTypeOf<RunStatus>();
    expectTypeOf<RunStatus>().toEqualTypeOf<
      "pending" | "in_progress" | "paused" | "completed" | "failed"
    >();
    expectTypeOf(state.error?.node).toEqualTypeOf<string | undefined>();
    // @ts-expect-error readonly
    state.runId = "x";
    // @ts-expect-error readonly
    state.step = 1;
  });
});

describe("get, has, set, merge, update", () => {
  test("are typed by key", () => {
    expectTypeOf(state.get("topic")).toBeString();
    expectTypeOf(state.get("words")).toEqualTypeOf<number | undefined>();
    expectTypeOf(state.get("tags")).toEqualTypeOf<string[]>();
    expectTypeOf(state.get("when")).toEqualTypeOf<Date>();
    expectTypeOf(state.get("index")).toEqualTypeOf<Map<string, { n: number }>>();
    expectTypeOf(state.has("words")).toBeBoolean();
    expectTypeOf(state.set("words", 1)).toEqualTypeOf<State<Article>>();
    expectTypeOf(state.merge({ words: 1, tags: ["x"] })).toEqualTypeOf<State<Article>>();
    expectTypeOf(state.merge(state)).toEqualTypeOf<State<Article>>();
    expectTypeOf(state.clone()).toEqualTypeOf<State<Article>>();
  });

  test("take back what a State gave", () => {
    state.set("tags", state.data.tags);
    state.set("index", state.get("index"));
    state.merge({ tags: [...state.data.tags, "x"], index: state.data.index });
    state.merge({ ...state.data });
  });

  test("refuse other keys and values", () => {
    // @ts-expect-error no such key
    state.get("wrods");
    // @ts-expect-error no such key
    state.has("wrods");
    // @ts-expect-error no such key
    state.set("wrods", 1);
    // @ts-expect-error another type
    state.set("words", "1");
    // @ts-expect-error may not be undefined
    state.set("topic", undefined);
    // @ts-expect-error no such key
    state.merge({ wrods: 1 });
    // @ts-expect-error another type
    state.merge({ words: "1" });
    // @ts-expect-error another type, deep inside
    state.merge({ tags: [1] });
    // @ts-expect-error other data
    state.merge(State.create({ topic: 5 }));
  });

  test("an update's draft can be written to", () => {
    state.update((draft) => {
      expectTypeOf(draft).toEqualTypeOf<Article>();
      draft.tags.push("x");
      draft.index.set("x", { n: 1 });
      delete draft.words;
      // @ts-expect-error another type
      draft.topic = 5;
      // @ts-expect-error no such key
      draft.wrods = 1;
    });
    // @ts-expect-error no function
    state.update({ words: 1 });
  });

  test("data of any keys works too", () => {
    const loose = State.create<Record<string, unknown>>({});
    expectTypeOf(loose.set("anything", 1).get("anything")).toBeUnknown();
  });
});

describe("a State", () => {
  test("is also one of less, and one of anything", () => {
    expectTypeOf(state).toExtend<State<{ topic: string }>>();
    expectTypeOf(state).toExtend<State<object>>();
    expectTypeOf<State<Record<string, unknown>>>().toExtend<State<object>>();
    expectTypeOf(generic).toBeFunction();
    expectTypeOf(state).not.toExtend<State<{ topic: number }>>();
    expectTypeOf(state).not.toExtend<State<{ other: string }>>();
  });

  test("is saved and read with its type", () => {
    const store = new MemoryStore();
    expectTypeOf(state.checkpoint(store)).resolves.toEqualTypeOf<State<Article>>();
    expectTypeOf(store.load<Article>("x")).resolves.toEqualTypeOf<State<Article>>();
    expectTypeOf(State.fromJSON<Article>(state.toJSON())).toEqualTypeOf<State<Article>>();
    // @ts-expect-error not a store
    void state.checkpoint({});
  });
});

function generic<D extends object>(one: State<D>): State<object> {
  return one;
}

test("isWaymarkError gives the class that carries a code", () => {
  const error = {} as unknown;
  if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND"))
    expectTypeOf(error).toEqualTypeOf<CheckpointNotFoundError>();
  if (isWaymarkError(error, "GRAPH_NO_ENTRY")) expectTypeOf(error).toEqualTypeOf<GraphError>();
  if (isWaymarkError(error, "MAX_ITERATIONS")) expectTypeOf(error).toEqualTypeOf<ExecutionError>();
  if (isWaymarkError(error, "CHECKPOINT_SAVE"))
    expectTypeOf(error).toEqualTypeOf<CheckpointSaveError>();
  if (isWaymarkError(error)) expectTypeOf(error).toExtend<WaymarkError>();
  // @ts-expect-error no such code
  isWaymarkError(error, "GRAPH_TYPO");
});
