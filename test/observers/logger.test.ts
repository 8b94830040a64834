import { describe, expect, test } from "vitest";
import type { AnyEvent } from "../../src/index.js";
import { type Logger, loggerObserver } from "../../src/observers/logger.js";
import { event } from "./events.js";

type Call = [level: string, ...args: unknown[]];

function recorder(debug = true): { logger: Logger; calls: Call[] } {
  const calls: Call[] = [];
  const at =
    (level: string) =>
    (...args: unknown[]) =>
      calls.push([level, ...args]);
  const logger = { info: at("info"), warn: at("warn"), error: at("error") };
  return { logger: debug ? { ...logger, debug: at("debug") } : logger, calls };
}

const tell = (observer: ReturnType<typeof loggerObserver>, ...events: AnyEvent[]): void => {
  for (const one of events) {
    if (typeof observer === "function") observer(one);
  }
};

const events = [
  event("node.start", "r", { node: "n", step: 0 }, "2026-01-01T00:00:00.000Z"),
  event("state.set", "r", { key: "k" }),
  event("node.retry", "r", { node: "n", step: 0, attempt: 1, error: "e", delayMs: 1 }),
  event("node.complete", "r", { node: "n", step: 0, durationMs: 1, error: "e" }),
  event("node.complete", "r", { node: "n", step: 1, durationMs: 1 }),
  event("graph.fail", "r", { node: "n", step: 0, code: "NODE_FAILED", error: "e" }),
];

describe("a logger", () => {
  test("gets each event as fields and a message, at its level", () => {
    const { logger, calls } = recorder();
    tell(loggerObserver(logger), ...events);
    expect(calls.map(([level]) => level)).toEqual([
      "info",
      "debug",
      "warn",
      "warn",
      "info",
      "error",
    ]);
    expect(calls[0]).toEqual([
      "info",
      {
        event: "node.start",
        run: "r",
        graph: "test",
        timestamp: "2026-01-01T00:00:00.000Z",
        data: { node: "n", step: 0 },
      },
      "test node.start",
    ]);
  });

  test("may lack debug, take the message first, and be filtered", () => {
    const { logger, calls } = recorder(false);
    const filter = ({ type }: AnyEvent): boolean => type !== "node.retry";
    tell(loggerObserver(logger, { first: "message", filter }), ...events);
    expect(calls.map(([level, message]) => [level, message])).toEqual([
      ["info", "test node.start"],
      ["warn", "test node.complete"],
      ["info", "test node.complete"],
      ["error", "test graph.fail"],
    ]);
  });

  test("must have info, warn and error", () => {
    expect(() => loggerObserver({ info() {}, warn() {} } as unknown as Logger)).toThrow(
      "logger must be an object with info, warn and error; got an object without error",
    );
    expect(() => loggerObserver(undefined as unknown as Logger)).toThrow("got undefined");
    const { logger } = recorder();
    expect(() => loggerObserver(logger, { first: "level" as never })).toThrow(
      'loggerObserver.first must be "fields" or "message"',
    );
  });
});
