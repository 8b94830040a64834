import { describe, expect, test, vi } from "vitest";
import {
  getObserver,
  noopObserver,
  type Observer,
  registerObserver,
  State,
  StateGraph,
} from "waymark";
import { configError } from "../matchers.js";

function run(observer: ConstructorParameters<typeof StateGraph>[0] & object): Promise<unknown> {
  return new StateGraph<object>(observer)
    .addNode("a", () => ({}))
    .setEntryPoint("a")
    .setExitPoint("a")
    .execute(State.create({}));
}

describe("the registry", () => {
  test("has noop, which does nothing, and console, the same one each time", () => {
    expect(getObserver("noop")).toBe(noopObserver);
    expect(typeof noopObserver === "function" && noopObserver({} as never)).toBeUndefined();
    expect(getObserver("console")).toBe(getObserver("console"));
  });

  test("returns what was registered, and lets it be replaced", () => {
    const [first, second] = [vi.fn(), { onEvent: vi.fn() }];
    registerObserver("audit", first);
    expect(getObserver("audit")).toBe(first);
    registerObserver("audit", second);
    expect(getObserver("audit")).toBe(second);
  });

  test("the error for an unknown name lists the known ones", () => {
    expect(() => getObserver("gone")).toThrow(
      configError("observer", /^observer "gone" is not registered; there are .*console, noop/),
    );
    expect(() => getObserver(5 as never)).toThrow(configError("observer", "5 is not registered"));
    expect(() => new StateGraph({ observer: "gone" })).toThrow(configError("observer"));
  });

  test("console can be replaced", () => {
    const before = getObserver("console");
    const mine = vi.fn();
    registerObserver("console", mine);
    expect(getObserver("console")).toBe(mine);
    registerObserver("console", before);
  });

  test.each<[unknown, unknown, string]>([
    ["", () => {}, "name"],
    [5, () => {}, "name"],
    ["x", undefined, "observer"],
    ["x", {}, "observer"],
    ["x", "console", "observer"],
  ])("refuses %j as a name with %j", (name, observer, option) => {
    expect(() => registerObserver(name as string, observer as Observer)).toThrow(
      configError(option, "got "),
    );
  });
});

describe("a graph's observers", () => {
  test("each get every event, unchanged; missing ones are ignored", async () => {
    const [first, second, third] = [vi.fn(), { onEvent: vi.fn() }, vi.fn()];
    registerObserver("third", third);
    await run({ observer: [undefined, first, "noop", second, "third", undefined] });
    const events = first.mock.calls;
    expect(events.map(([{ type }]) => type)).toContain("graph.complete");
    expect(second.onEvent.mock.calls).toEqual(events);
    expect(third.mock.calls).toEqual(events);
  });

  test.each<[unknown]>([[5], [null], [{}], [[null]], [[{}]]])("may not be %j", (observer) => {
    expect(() => new StateGraph({ observer: observer as never })).toThrow(
      configError("config.observer", "must be a name, a function or an object with onEvent; got "),
    );
  });
});
