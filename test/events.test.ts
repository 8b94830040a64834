import { beforeEach, describe, expect, test, vi } from "vitest";
import { type AnyEvent, StateGraph } from "waymark";
import { useClock } from "../src/clock.js";
import { both, EventBus, isObserver, observe } from "../src/events.js";
import { useFakeClock } from "../src/testing/fake-clock.js";
import { configError } from "./matchers.js";

const data = { node: "draft", step: 1 };

function tell(bus: EventBus): void {
  bus.emit("node.start", "article", "run-1", data);
}

beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => {});
});

describe("an event", () => {
  test("prints what happened, when, in which run, and the source", () => {
    const clock = useFakeClock(Date.parse("2030-01-01T00:00:00.000Z"));
    const [bus, listener] = [new EventBus(), vi.fn()];
    bus.on("node.start", listener);
    tell(bus);
    clock.restore();
    const timestamp = "2030-01-01T00:00:00.000Z";
    const event = { type: "node.start", timestamp, source: "article", runId: "run-1", data };
    expect(listener).toHaveBeenCalledExactlyOnceWith(event);
  });

  test("may have a given time", () => {
    const [bus, listener] = [new EventBus(), vi.fn()];
    bus.on("*", listener);
    bus.emit("node.start", "article", "run-1", data, "2001-01-01T00:00:00.000Z");
    expect(listener.mock.lastCall?.[0].timestamp).toBe("2001-01-01T00:00:00.000Z");
  });

  test("reaches handlers of its type, then handlers of all types, and no others", () => {
    const bus = new EventBus();
    const heard: string[] = [];
    bus.on("*", () => heard.push("all"));
    bus.on("node.start", () => heard.push("typed"));
    bus.on("graph.start", () => heard.push("other"));
    tell(bus);
    expect(heard).toEqual(["typed", "all"]);
  });

  test("is not created without listeners", () => {
    const bus = new EventBus();
    const now = vi.fn(() => 0);
    const restore = useClock({ now, after: () => () => {} });
    tell(bus);
    bus.on("graph.start", () => {});
    tell(bus);
    restore();
    expect(now).not.toHaveBeenCalled();
  });
});

test("listens reports whether a type has handlers, active whether any type has", () => {
  const bus = new EventBus();
  const listener = (): void => {};
  const now = () => [bus.listens("node.start"), bus.listens("graph.start"), bus.active];
  expect(now()).toEqual([false, false, false]);
  bus.on("node.start", listener);
  expect(now()).toEqual([true, false, true]);
  bus.on("*", listener);
  expect(now()).toEqual([true, true, true]);
  bus.off("*", listener);
  expect(now()).toEqual([true, false, true]);
  bus.off("node.start", listener);
  expect(now()).toEqual([false, false, false]);
});

describe("a listener", () => {
  test("that was added twice to a type is called once, and removed by one off", () => {
    const [bus, listener] = [new EventBus(), vi.fn()];
    bus.on("node.start", listener);
    bus.on("node.start", listener);
    bus.on("*", listener);
    tell(bus);
    expect(listener).toHaveBeenCalledTimes(2);
    bus.off("node.start", listener);
    tell(bus);
    expect(listener).toHaveBeenCalledTimes(3);
    bus.off("*", listener);
    tell(bus);
    expect(listener).toHaveBeenCalledTimes(3);
  });

  test("that was never added can be removed", () => {
    const [bus, listener] = [new EventBus(), vi.fn()];
    bus.off("node.start", listener);
    bus.on("node.start", listener);
    bus.off("graph.start", listener);
    tell(bus);
    expect(listener).toHaveBeenCalledTimes(1);
  });

  test("that is removed during an event, or removes another, keeps no other from being called", () => {
    const bus = new EventBus();
    const heard: string[] = [];
    const first = (): void => {
      heard.push("first");
      bus.off("node.start", first);
    };
    bus.on("node.start", first);
    bus.on("node.start", () => heard.push("second"));
    bus.on("*", () => heard.push("third"));
    tell(bus);
    tell(bus);
    expect(heard).toEqual(["first", "second", "third", "second", "third"]);
  });

  test("that is added during an event is called from the next one on", () => {
    const bus = new EventBus();
    const late = vi.fn();
    bus.on("node.start", () => bus.on("node.start", late));
    tell(bus);
    expect(late).not.toHaveBeenCalled();
    tell(bus);
    expect(late).toHaveBeenCalledTimes(1);
  });

  test.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("mine");
      },
    ],
    ["rejects", () => Promise.reject(new Error("mine"))],
    [
      "is async and throws",
      async () => {
        throw new Error("mine");
      },
    ],
  ])("that %s disturbs nobody, and is reported once", async (_, listener) => {
    const [bus, other] = [new EventBus(), vi.fn()];
    bus.on("node.start", listener);
    bus.on("node.start", other);
    for (let time = 0; time < 3; time++) expect(() => tell(bus)).not.toThrow();
    await new Promise((resolve) => setImmediate(resolve));
    expect(other).toHaveBeenCalledTimes(3);
    expect(console.error).toHaveBeenCalledExactlyOnceWith(
      'waymark: a listener for "node.start" failed; later failures are not shown.',
      expect.objectContaining({ message: "mine" }),
    );
  });

  test("that fails is reported beside another that fails", () => {
    const bus = new EventBus();
    for (const message of ["one", "two"]) {
      bus.on("*", () => {
        throw new Error(message);
      });
    }
    tell(bus);
    tell(bus);
    expect(console.error).toHaveBeenCalledTimes(2);
  });

  test.each<[unknown]>([[undefined], [null], [{ onEvent() {} }], ["log"]])(
    "may not be %o",
    (handler) => {
      const wanted = configError("handler", "must be a function; got ");
      expect(() => new EventBus().on("*", handler as never)).toThrow(wanted);
      expect(() => new StateGraph().on("node.start", handler as never)).toThrow(wanted);
    },
  );
});

describe("an observer", () => {
  test("is a function, or an object whose onEvent keeps its this", () => {
    class Counter {
      count = 0;
      onEvent(): void {
        this.count++;
      }
    }
    const [bus, counter, plain] = [new EventBus(), new Counter(), vi.fn()];
    observe(bus, counter);
    observe(bus, plain);
    tell(bus);
    expect([counter.count, plain.mock.calls.length]).toEqual([1, 1]);
  });

  test.each<[unknown, boolean]>([
    [() => {}, true],
    [{ onEvent() {} }, true],
    [{}, false],
    [{ onEvent: "log" }, false],
    [null, false],
    [undefined, false],
    ["console", false],
  ])("%o: %s", (value, expected) => {
    expect(isObserver(value)).toBe(expected);
  });
});

describe("both", () => {
  test("listens if one of them does, and passes each only its types", () => {
    const [first, second] = [new EventBus(), new EventBus()];
    const sink = both(first, second);
    const heard: AnyEvent[] = [];
    expect(sink.listens("node.start")).toBe(false);
    second.on("node.start", (event) => heard.push(event));
    expect([sink.listens("node.start"), sink.listens("graph.start")]).toEqual([true, false]);
    first.on("*", (event) => heard.push(event));
    expect(sink.listens("graph.start")).toBe(true);
    sink.emit("node.start", "article", "run-1", data, "2001-01-01T00:00:00.000Z");
    expect(heard).toHaveLength(2);
    expect(heard[0]).toEqual(heard[1]);
    sink.emit("graph.complete", "article", "run-1", { exitPoint: "x", step: 1 });
    expect(heard).toHaveLength(3);
  });
});
