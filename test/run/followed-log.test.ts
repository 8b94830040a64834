import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AnyEvent, MemoryStore, type Observer, State, StateGraph } from "waymark";
import { eventLog } from "waymark/observers/event-log";
import { FileStore } from "waymark/stores/file";
import { SqliteStore } from "waymark/stores/sqlite";
import { bundle, removeBundle } from "../crash/bundle.js";
import { gate } from "../graphs.js";

let built: Awaited<ReturnType<typeof bundle>>;
let worlds = 0;

beforeAll(async () => {
  built = await bundle("logged", join(import.meta.dirname, "fixtures"));
});

afterAll(() => removeBundle(built));

const named = ({ type, timestamp }: AnyEvent): string => `${type} ${timestamp}`;
const typeOf = (name: string): string => name.slice(0, name.indexOf(" "));

/** A disk, on which a process of `fixtures/logged.ts` runs `r` and this one follows it. */
class World {
  readonly root = join(built.folder, `world-${++worlds}`);
  readonly #settings: { readonly store: string; readonly preserve: boolean; log?: object };

  constructor(store: string, preserve = true, log: object | undefined = {}) {
    this.#settings = { store, preserve, log };
    mkdirSync(this.root);
  }

  /** Starts a process, and gives the events that it says until it ends. Resolves when the run is in the store. */
  async run(verb: "start" | "resume", isLogged = true) {
    const { log, ...rest } = this.#settings;
    const settings = { root: this.root, verb, ...rest, ...(isLogged && { log }) };
    const args = [built.script, JSON.stringify(settings)];
    const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
    const events: string[] = [];
    const said = new Promise<string[]>((resolve) => child.on("close", () => resolve(events)));
    await new Promise<void>((resolve) => {
      createInterface(child.stdout).on("line", (line) => {
        events.push(line);
        if (typeOf(line) === "node.start") resolve();
      });
    });
    return { go: () => child.stdin.write("go\n"), kill: () => child.kill("SIGKILL"), said };
  }

  /** The run's events, as this process sees them; each is given to `hear` at once. */
  async follow(hear = (_event: AnyEvent): void => {}, isLogged = true): Promise<string[]> {
    const { root } = this;
    const store =
      this.#settings.store === "file"
        ? new FileStore({ root })
        : new SqliteStore({ path: `${root}/waymark.db` });
    const graph = new StateGraph<{ n: number }>({
      name: "logged",
      observer: isLogged ? eventLog({ root }) : "noop",
      checkpoint: { store, interval: 1 },
    })
      .addNode("a", (state) => state)
      .setEntryPoint("a")
      .setExitPoint("a");
    const events: string[] = [];
    for await (const event of graph.attach("r").events({ from: "start" })) {
      events.push(named(event));
      hear(event);
    }
    await store.close();
    return events;
  }

  /** Starts a process and kills it in the middle of node `b`. */
  async killed(): Promise<string[]> {
    const { kill, said } = await this.run("start");
    await this.follow(({ type }) => type === "progress" && kill());
    return said;
  }

  /** Lets another process resume the run, to its end. */
  async resumed(isLogged = true): Promise<string[]> {
    const { go, said } = await this.run("resume", isLogged);
    go();
    return said;
  }
}

describe.each(["file", "sqlite"])("a run of another process, in %s", (store) => {
  test("gives the log's events first, then live ones, until the end", async () => {
    const world = new World(store);
    const { go, said } = await world.run("start");
    // The run waits in a node until this process has got an event from the middle of it.
    const seen = await world.follow(({ type }) => type === "progress" && go());
    expect(seen).toEqual(await said);
    expect(typeOf(seen.at(-1) ?? "")).toBe("graph.complete");
    expect(await world.follow()).toEqual(seen);
  });

  test("gives each event once despite a killed process, a torn line and a resume", async () => {
    const world = new World(store, true, { maxBytes: 1024 });
    const first = await world.killed();
    appendFileSync(join(world.root, "r/events.jsonl"), '{"ts":"2026-01-01T00:0');
    expect(await world.follow()).toEqual(first);
    const second = await world.resumed();
    expect(await world.follow()).toEqual([...first, ...second]);
  });

  test("gives steps missing from the log from the checkpoint, in order", async () => {
    const world = new World(store, true, { maxBytes: 1024, maxFiles: 2 });
    const first = await world.killed();
    const second = await world.resumed();
    const all = [...first, ...second];
    const seen = await world.follow();
    const pruned = seen.findIndex((event) => !/^(graph.start|node.complete)/.test(event));
    // All that is left of the log, and what is known of the rest.
    expect(seen.slice(pruned)).toEqual(all.slice(-seen.length + pruned));
    const steps = (events: string[]) => events.filter((event) => typeOf(event) === "node.complete");
    expect(steps(seen)).toEqual(steps(all));
    expect(typeOf(seen[0] ?? "")).toBe("graph.start");
    expect(seen.length).toBeLessThan(all.length);
  });

  test("is followed by its checkpoints if it has no log", async () => {
    const world = new World(store);
    const first = await world.killed();
    const second = await world.resumed(false);
    const rest = second.filter((event) => /^node.complete/.test(event));
    const seen = await world.follow();
    expect(seen.slice(0, -1)).toEqual([...first, ...rest]);
    expect(typeOf(seen.at(-1) ?? "")).toBe("graph.complete");
    const records = await world.follow(undefined, false);
    expect(records.map(typeOf)).toEqual([
      "graph.start",
      ...Array.from({ length: 3 }, () => "node.complete"),
      "graph.complete",
    ]);
  });

  test("is read from its log after its checkpoints are removed", async () => {
    const world = new World(store, false);
    const { go, said } = await world.run("start");
    const seen = await world.follow(({ type }) => type === "progress" && go());
    expect(seen).toEqual(await said);
    expect(await world.follow()).toEqual(seen);
    expect(seen.map(typeOf)).toContain("checkpoint.delete");
  });
});

/** A graph of three nodes, the second of which may wait. */
function counting(store: MemoryStore, observer: Observer, wait?: () => Promise<void>) {
  return new StateGraph<{ n: number }>({
    name: "counting",
    observer,
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("a", () => ({ n: 1 }))
    .addNode("b", async () => {
      await wait?.();
      return { n: 2 };
    })
    .addNode("c", () => ({ n: 3 }))
    .addEdge("a", "b")
    .addEdge("b", "c")
    .setEntryPoint("a")
    .setExitPoint("c");
}

/** A log, with what it has got, and a gate that opens when somebody has read it. */
function logged(filter = (_event: AnyEvent): boolean => true) {
  const log = eventLog({ path: join(built.folder, `log-${++worlds}.jsonl`), filter });
  const events: AnyEvent[] = [];
  const wasRead = gate();
  const onEvent = (event: AnyEvent): void => {
    log.onEvent(event);
    events.push(event);
  };
  const tail: (typeof log)["tail"] = (...given) => {
    const opened = log.tail(...given);
    return {
      next: async function* next(known) {
        yield* opened.next(known);
        wasRead.open();
      },
      end: (...args) => opened.end(...args),
    };
  };
  return { events, wasRead, onEvent, tail };
}

async function all(events: AsyncIterable<AnyEvent>): Promise<string[]> {
  const seen: string[] = [];
  for await (const event of events) seen.push(named(event));
  return seen;
}

test("a rolled-back run gives everything it has done, each step once", async () => {
  const store = new MemoryStore();
  const log = logged();
  const graph = counting(store, log);
  await graph.execute(State.create({ n: 0 }, { runId: "r" }));
  await graph.rollback("r", 1);
  const follower = counting(store, log);
  expect(await all(follower.attach("r").events({ from: "start" }))).toEqual(log.events.map(named));
  await graph.resume("r");
  const seen = await all(follower.attach("r").events({ from: "start" }));
  expect(seen).toEqual(log.events.map(named));
  expect(seen.filter((event) => typeOf(event) === "node.complete")).toHaveLength(5);
});

test("a late reader without a start gets the log from then on", async () => {
  const store = new MemoryStore();
  const log = logged();
  const [inB, go] = [gate(), gate()];
  const graph = counting(store, log, () => {
    inB.open();
    return go.opened;
  });
  const run = graph.start(State.create({ n: 0 }, { runId: "r" }));
  await inB.opened;
  const before = log.events.length;
  const seen = all(counting(store, log).attach("r").events());
  await log.wasRead.opened;
  go.open();
  await run.result();
  expect(await seen).toEqual(log.events.slice(before).map(named));
});

test("steps that a log leaves out appear where they happened", async () => {
  const store = new MemoryStore();
  const log = logged(({ type }) => type === "node.start" || type === "graph.complete");
  const graph = counting(store, log);
  await graph.execute(State.create({ n: 0 }, { runId: "r" }));
  const seen = await all(counting(store, log).attach("r").events({ from: "start" }));
  expect(seen.map(typeOf)).toEqual([
    "graph.start",
    ...["node.start", "node.complete", "node.start", "node.complete", "node.start"],
    ...["node.complete", "graph.complete"],
  ]);
});
