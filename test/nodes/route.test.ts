import { describe, expect, test, vi } from "vitest";
import {
  chain,
  ExecutionError,
  MemoryStore,
  type NodeFunction,
  pause,
  RouteError,
  route,
  State,
} from "waymark";
import { rejection } from "../graphs.js";
import { configError } from "../matchers.js";
import { brief, Counts, eventsOf, MortalStore, only, remembered } from "./nodes.js";

interface Ticket {
  readonly kind: string;
  readonly answer: string;
}

const ticket = (kind: string): State<Ticket> =>
  State.create<Ticket>({ kind, answer: "" }, { runId: "r" });
const kind = (state: State<Ticket>): string => state.data.kind;
const answer =
  (text: string): NodeFunction<Ticket> =>
  () => ({ answer: text });
const handlers = { bill: answer("paid"), bug: answer("fixed") };

async function failing(node: NodeFunction<Ticket>, of = "bug"): Promise<RouteError> {
  const failure = await rejection(only(node).execute(ticket(of)), ExecutionError);
  expect(failure).toMatchObject({ code: "NODE_FAILED", nodeName: "work" });
  expect(failure.cause).toBeInstanceOf(RouteError);
  return failure.cause as RouteError;
}

describe("a route", () => {
  test.each([
    ["bill", "paid"],
    ["bug", "fixed"],
  ])("runs the chosen handler: %s", async (name, text) => {
    const others = { ...handlers, other: vi.fn(answer("")) };
    expect((await only(route(kind, others)).execute(ticket(name))).data.answer).toBe(text);
    expect(others.other).not.toHaveBeenCalled();
  });

  test("may be chosen asynchronously", async () => {
    const node = route<Ticket>(
      async (state, { node }) => (node === "work" ? kind(state) : ""),
      handlers,
    );
    expect((await only(node).execute(ticket("bug"))).data.answer).toBe("fixed");
  });

  test("that is unknown uses the fallback", async () => {
    const node = route(kind, handlers, answer("passed on"));
    expect((await only(node).execute(ticket("praise"))).data.answer).toBe("passed on");
    expect((await only(node).execute(ticket("toString"))).data.answer).toBe("passed on");
  });

  test("that is unknown, without a fallback, is an error that lists the routes", async () => {
    expect(await failing(route(kind, handlers), "praise")).toMatchObject({
      code: "ROUTE_UNKNOWN",
      route: "praise",
      message: 'there is no route "praise" and no fallback; the routes are: "bill", "bug"',
    });
    expect((await failing(route(kind, {}))).message).toContain("the routes are: none");
  });

  test("distinguishes errors of the choice and of the handler, and both unwrap", async () => {
    const boom = new TypeError("boom");
    const throws = (): never => {
      throw boom;
    };
    const chosen = await failing(route<Ticket>(throws, handlers));
    expect(chosen).toMatchObject({
      code: "ROUTE_CHOICE",
      route: undefined,
      message: "choosing a route failed: boom",
    });
    expect(chosen.cause).toBe(boom);
    const handled = await failing(route<Ticket>(kind, { bug: throws }));
    expect(handled).toMatchObject({
      code: "ROUTE_FAILED",
      route: "bug",
      message: 'route "bug" failed: boom',
    });
    expect(handled.cause).toBe(boom);
  });

  test("that is not a string is an error of the choice", async () => {
    const error = await failing(route<Ticket>((() => 7) as never, handlers));
    expect(error).toMatchObject({
      code: "ROUTE_CHOICE",
      message: "choose must return a string; got 7",
    });
  });

  test("does not run once the run is cancelled", async () => {
    const controller = new AbortController();
    const bug = vi.fn(answer("fixed"));
    const node = route<Ticket>(
      (state) => {
        controller.abort();
        return kind(state);
      },
      { bug },
    );
    const { signal } = controller;
    const failure = await rejection(only(node).execute(ticket("bug"), { signal }), ExecutionError);
    expect(failure.code).toBe("ABORTED");
    expect(bug).not.toHaveBeenCalled();
  });

  test("is not chosen once the run is cancelled", async () => {
    const controller = new AbortController();
    const node = route<Ticket>((_state, context) => {
      controller.abort();
      context.signal.throwIfAborted();
      return "bug";
    }, handlers);
    const { signal } = controller;
    const failure = await rejection(only(node).execute(ticket("bug"), { signal }), ExecutionError);
    expect(failure).toMatchObject({ code: "ABORTED", cause: signal.reason });
  });

  test("whose handler ends by the signal is stopped, not failed", async () => {
    const controller = new AbortController();
    const node = route<Ticket>(kind, {
      bug: (_state, { signal }) => {
        controller.abort();
        signal.throwIfAborted();
        return {};
      },
    });
    const { signal } = controller;
    const failure = await rejection(only(node).execute(ticket("bug"), { signal }), ExecutionError);
    expect(failure).toMatchObject({ code: "ABORTED", cause: signal.reason });
  });

  test("emits its events, also for an error and the fallback", async () => {
    const node = route<Ticket>(kind, { bug: () => Promise.reject(new Error("boom")) }, answer(""));
    const graph = only(node);
    const events = eventsOf(graph, "route");
    await graph.execute(ticket("bug")).catch(() => {});
    await graph.execute(ticket("praise"));
    expect(brief(events, "route", "fallback", "error")).toEqual([
      "route.evaluate",
      "route.select bug false",
      "route.execute bug false boom",
      "route.evaluate",
      "route.select praise true",
      "route.execute praise true",
    ]);
  });

  test("refuses invalid options", () => {
    expect(() => route("bug" as never, {})).toThrow(configError("choose", "must be a function"));
    expect(() => route(kind, null as never)).toThrow(configError("handlers", "an object of nodes"));
    expect(() => route(kind, { bug: 1 as never })).toThrow(configError("handlers.bug"));
    expect(() => route(kind, {}, 1 as never)).toThrow(configError("fallback"));
  });
});

describe("a handler is a node like any other", () => {
  test("and may return a pause", async () => {
    const node = route<Ticket>(kind, {
      bug: (state) => pause(state, { reason: "look", ask: "?", into: "answer" }),
    });
    const graph = only(node, { checkpoint: { store: new MemoryStore(), interval: 1 } });
    expect((await graph.execute(ticket("bug"))).status).toBe("paused");
    expect((await graph.resume("r", { input: "fixed" })).data.answer).toBe("fixed");
  });

  test("and may pause inside, without choosing again", async () => {
    const counts = new Counts();
    const node = route<Ticket>(
      (state) => {
        counts.add("choose");
        return kind(state);
      },
      {
        bug: async (state, context) =>
          state.set("answer", String(await context.pause("ok", { reason: "look", ask: "?" }))),
      },
    );
    const graph = only(node, { checkpoint: { store: new MemoryStore(), interval: 1 } });
    await graph.execute(ticket("bug"));
    expect((await graph.resume("r", { input: "fixed" })).data.answer).toBe("fixed");
    expect(counts.all).toEqual({ choose: 1 });
  });

  test("and keeps its saved work and its choice after a crash", async () => {
    const store = new MemoryStore();
    const counts = new Counts();
    const node = route<Ticket>(
      (state) => {
        counts.add("choose");
        // The second time it would be another.
        return counts.of("choose") === 1 ? kind(state) : "bill";
      },
      {
        bill: answer("paid"),
        bug: chain<Ticket, string>(["a", "b", "c"], (state, item) => {
          counts.add(item);
          return state.set("answer", state.data.answer + item);
        }),
      },
    );
    // The start, the choice with the first step, the second step.
    const dying = { checkpoint: { store: new MortalStore(store, 3), interval: 1 } };
    await expect(only(node, dying).execute(ticket("bug"))).rejects.toThrow("dead");
    expect(Object.keys(await remembered(store, "r"))).toEqual([
      "route",
      "route bug chain",
      "data: route bug chain",
      "route bug chain 2",
    ]);
    const graph = only(node, { checkpoint: { store, interval: 1 } });
    const events = eventsOf(graph, "route");
    expect((await graph.resume("r")).data.answer).toBe("abc");
    expect(counts.all).toEqual({ choose: 1, a: 1, b: 1, c: 2 });
    expect(brief(events, "route")).toEqual(["route.select bug", "route.execute bug"]);
  });

  test("and keeps its choice after a milestone", async () => {
    const store = new MemoryStore();
    let online = false;
    const node = route<Ticket>(kind, {
      bug: async (state, context) => {
        if (state.data.answer === "") {
          // From here on the State would lead to another route.
          await context.checkpoint(state.merge({ kind: "bill", answer: "half" }), "half");
          if (!online) throw new Error("offline");
        }
        return { answer: `${state.data.answer} fixed` };
      },
      bill: answer("paid"),
    });
    const graph = only(node, { checkpoint: { store, interval: 1 } });
    await rejection(graph.execute(ticket("bug")), ExecutionError);
    online = true;
    expect((await graph.resume("r")).data).toEqual({ kind: "bill", answer: "half fixed" });
  });

  test("and has the context of the node", async () => {
    const seen: unknown[] = [];
    const node = route<Ticket>(kind, {
      bug: (state, context) => {
        const { runId, node, step, attempt, idempotencyKey, draining } = context;
        seen.push(runId, node, step, attempt, idempotencyKey, draining.aborted);
        context.progress({ title: "Bug", summary: "seen" });
        context.ledger.usage({ inputTokens: 1 });
        return state;
      },
    });
    const graph = only(node);
    const events = eventsOf(graph, "progress");
    const { ledger } = await graph.execute(ticket("bug"));
    expect(seen).toEqual(["r", "work", 0, 1, "r:0:work", false]);
    expect(brief(events, "node", "title")).toEqual(["progress work Bug"]);
    expect(ledger.nodes).toMatchObject({ work: { inputTokens: 1 } });
  });

  test("and causes no save if it saves nothing", async () => {
    const store = new MortalStore(new MemoryStore());
    await only(route(kind, handlers), { checkpoint: { store, interval: 1 } }).execute(
      ticket("bug"),
    );
    expect(store.saves).toBe(2);
  });
});
