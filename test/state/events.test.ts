import { describe, expect, test, vi } from "vitest";
import { type AnyEvent, State } from "waymark";

interface Data {
  a: number;
  b?: number;
  list: number[];
}

function observed(): { readonly state: State<Data>; readonly events: AnyEvent[] } {
  const events: AnyEvent[] = [];
  const observer = { onEvent: (event: AnyEvent) => events.push(event) };
  const state = State.create<Data>({ a: 1, list: [] }, { runId: "run-1", observer });
  return { state, events };
}

describe("a State emits to its observer", () => {
  test.each<[string, (state: State<Data>) => unknown, object]>([
    ["state.clone", (s) => s.clone(), { keys: 2 }],
    ["state.set", (s) => s.set("b", 2), { key: "b" }],
    ["state.merge", (s) => s.merge({ a: 2 }), { keys: 1 }],
    ["state.merge", (s) => s.merge(s), { keys: 2 }],
    ["state.merge", (s) => s.update((draft) => void draft.list.push(1)), { keys: 2 }],
  ])("%s", (type, change, data) => {
    const { state, events } = observed();
    change(state);
    expect(events.slice(1)).toEqual([
      { type, timestamp: expect.any(String), source: "state", runId: "run-1", data },
    ]);
  });

  test("state.create, with how many keys it has", () => {
    expect(observed().events).toMatchObject([
      { type: "state.create", source: "state", runId: "run-1", data: { keys: 2 } },
    ]);
  });

  test("for all States derived from it", () => {
    const { state, events } = observed();
    state.set("a", 2).merge({ b: 1 }).setCheckpointNode("x").clone();
    expect(events.map(({ type }) => type)).toEqual([
      "state.create",
      "state.set",
      "state.merge",
      "state.clone",
    ]);
  });

  test("nothing if the data did not change, or was refused", () => {
    const { state, events } = observed();
    state.update(() => {});
    expect(() => state.merge(null as never)).toThrow();
    state.savedAs({ checkpointId: "x", sequence: 1 });
    State.fromJSON(state.toJSON());
    expect(events).toHaveLength(1);
  });

  test("never the value that was set", () => {
    const { state, events } = observed();
    state.set("b", 987_654).merge({ b: 987_654 });
    expect(JSON.stringify(events)).not.toContain("987654");
  });

  test("also if it is a function; one that throws has no effect", () => {
    const report = vi.spyOn(console, "error").mockImplementation(() => {});
    const observer = vi.fn(() => {
      throw new Error("mine");
    });
    const state = State.create<{ a: number }>({ a: 1 }, { observer }).set("a", 2);
    expect(state.data.a).toBe(2);
    expect(observer).toHaveBeenCalledTimes(2);
    expect(report).toHaveBeenCalledTimes(1);
    report.mockRestore();
  });
});
