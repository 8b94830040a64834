import { afterEach, expect, test, vi } from "vitest";
import { MemoryStore, State } from "waymark";
import { opened, token } from "./harness.js";

interface Message {
  readonly id: string;
  readonly event: string;
  readonly data: { readonly runId?: string; readonly step?: number; readonly sequence?: number };
}

type Opened = ReturnType<typeof opened>;

const open: Opened[] = [];

afterEach(async () => {
  for (const { handler } of open.splice(0)) await handler.close();
});

function studioOf(store: MemoryStore): Opened {
  const made = opened({ store });
  open.push(made);
  return made;
}

/** A connection to the stream, read message by message. */
class Connection {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #text = "";
  /** The id of the last message. */
  id = "";

  private constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  static async to({ call }: Opened, path = "/api/events", lastId = ""): Promise<Connection> {
    const headers = lastId === "" ? {} : { "last-event-id": lastId };
    const response = await call("GET", path, undefined, headers);
    if (response.body === null || response.status !== 200) throw new Error(`${response.status}`);
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    const connection = new Connection(response.body);
    expect((await connection.next()).event).toBe("ready");
    return connection;
  }

  async next(): Promise<Message> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const block = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        if (block.startsWith(":")) continue;
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? "";
        this.id = field("id");
        return { id: this.id, event: field("event"), data: JSON.parse(field("data")) };
      }
      const { done, value } = await this.#reader.read();
      if (done) throw new Error("the stream has ended");
      this.#text += new TextDecoder().decode(value);
    }
  }

  close(): Promise<void> {
    return this.#reader.cancel();
  }
}

async function saved(store: MemoryStore, runId: string): Promise<State<{ n: number }>> {
  return State.create({ n: 0 }, { runId }).checkpoint(store);
}

test("runs that are new or saved appear", async () => {
  const store = new MemoryStore();
  await saved(store, "old");
  const stream = await Connection.to(studioOf(store));
  const state = await saved(store, "new");
  expect(await stream.next()).toMatchObject({ event: "run", data: { runId: "new", step: 0 } });
  await state.setCheckpointNode("draft").checkpoint(store);
  expect(await stream.next()).toMatchObject({
    event: "run",
    data: { runId: "new", node: "draft" },
  });
  await stream.close();
});

test("a run that is deleted here is reported", async () => {
  const store = new MemoryStore();
  await saved(store, "monday");
  const made = studioOf(store);
  const stream = await Connection.to(made);
  await made.call("DELETE", "/api/runs/monday");
  expect(await stream.next()).toMatchObject({ event: "delete", data: { runId: "monday" } });
  await stream.close();
});

test("a run that is deleted elsewhere is reported, once", async () => {
  const store = new MemoryStore();
  await saved(store, "monday");
  await saved(store, "tuesday");
  const made = studioOf(store);
  const stream = await Connection.to(made);
  await store.delete("monday");
  expect(await stream.next()).toMatchObject({ event: "delete", data: { runId: "monday" } });
  await made.call("DELETE", "/api/runs/tuesday");
  expect(await stream.next()).toMatchObject({ event: "delete", data: { runId: "tuesday" } });
  await saved(store, "wednesday");
  expect(await stream.next()).toMatchObject({ event: "run", data: { runId: "wednesday" } });
  await store.delete("wednesday");
  expect(await stream.next()).toMatchObject({ event: "delete", data: { runId: "wednesday" } });
  await stream.close();
});

test("a run that newer ones push off the list is not taken for deleted", async () => {
  const store = new MemoryStore();
  await saved(store, "monday");
  const stream = await Connection.to(studioOf(store));
  for (let at = 0; at < 250; at++) await saved(store, `run-${at}`);
  for (let at = 0; at < 250; at++) expect((await stream.next()).event).toBe("run");
  await saved(store, "last");
  expect(await stream.next()).toMatchObject({ event: "run", data: { runId: "last" } });
  await stream.close();
});

test("a thousand reconnects lose no run and repeat none", async () => {
  const store = new MemoryStore();
  const made = studioOf(store);
  await saved(store, "before");
  const clients = Array.from({ length: 20 }, () => ({ seen: [] as string[], lastId: "" }));
  for (const client of clients) {
    const stream = await Connection.to(made);
    client.lastId = stream.id;
    await stream.close();
  }
  for (let at = 0; at < 50; at++) {
    // Saved while nobody is connected.
    await saved(store, `run-${at}`);
    await Promise.all(
      clients.map(async (client) => {
        const stream = await Connection.to(made, "/api/events", client.lastId);
        const { id, event, data } = await stream.next();
        client.seen.push(`${event} ${data.runId}`);
        client.lastId = id;
        await stream.close();
      }),
    );
  }
  const all = Array.from({ length: 50 }, (_, at) => `run run-${at}`);
  for (const { seen } of clients) expect(seen).toEqual(all);
});

test("a thousand reconnects to one run give each of its checkpoints once, of any server", async () => {
  const store = new MemoryStore({ keep: Number.POSITIVE_INFINITY });
  let state = await saved(store, "monday");
  const servers = [studioOf(store), studioOf(store)];
  const seen: number[] = [];
  let lastId = "0";
  for (let at = 0; at < 1000; at++) {
    const server = servers[at % 2] as Opened;
    const stream = await Connection.to(server, "/api/events?run=monday", lastId);
    const { id, data } = await stream.next();
    seen.push(data.sequence ?? 0);
    lastId = id;
    await stream.close();
    state = await state.checkpoint(store);
  }
  expect(seen).toEqual(Array.from({ length: 1000 }, (_, at) => at + 1));
}, 120_000);

test("one run's stream has all checkpoints of a long history, in their order", async () => {
  const store = new MemoryStore({ keep: Number.POSITIVE_INFINITY });
  let state = await saved(store, "monday");
  while (state.sequence < 2500) state = await state.checkpoint(store);
  const stream = await Connection.to(studioOf(store), "/api/events?run=monday", "0");
  for (let sequence = 1; sequence <= 2500; sequence++) {
    expect((await stream.next()).data.sequence).toBe(sequence);
  }
  await stream.close();
});

test("one run's stream begins with what comes, and says when the run is gone", async () => {
  const store = new MemoryStore();
  const state = await saved(store, "monday");
  await saved(store, "other");
  const stream = await Connection.to(studioOf(store), "/api/events?run=monday");
  await state.setCheckpointNode("draft").checkpoint(store);
  expect(await stream.next()).toMatchObject({
    id: "2",
    event: "checkpoint",
    data: { sequence: 2, node: "draft" },
  });
  await store.delete("monday");
  expect(await stream.next()).toMatchObject({ event: "delete", data: { runId: "monday" } });
  await saved(store, "monday");
  expect(await stream.next()).toMatchObject({ id: "1", event: "checkpoint" });
  await stream.close();
});

test("an id that is unknown or too old gets a reset, and then what comes", async () => {
  const store = new MemoryStore();
  const made = studioOf(store);
  for (const id of ["nonsense", "00000000.5", "x".repeat(5000)]) {
    const stream = await Connection.to(made, "/api/events", id);
    expect((await stream.next()).event).toBe("reset");
    await saved(store, `after ${id.slice(0, 20)}`);
    expect(await stream.next()).toMatchObject({ event: "run" });
    await stream.close();
  }
});

test("what nobody reads is not kept for ever: a client far behind gets a reset", async () => {
  const store = new MemoryStore();
  const made = studioOf(store);
  const first = await Connection.to(made);
  await saved(store, "first");
  const { id } = await first.next();
  await first.close();
  for (let at = 0; at < 600; at++) await saved(store, `many-${at}`);
  const stream = await Connection.to(made, "/api/events", id);
  expect((await stream.next()).event).toBe("reset");
  await stream.close();
});

test("a burst that lasts is one reset at its start and one at its end, not one at every look", async () => {
  const store = new MemoryStore();
  await saved(store, "before");
  const [run] = await store.runs();
  if (run === undefined) throw new Error("nothing was saved");
  const start = Date.parse(run.savedAt);
  const at = (look: number) => new Date(start + look).toISOString();
  let all = [run];
  let looks = 0;
  vi.spyOn(store, "runs").mockImplementation(async ({ cursor, limit } = {}) => {
    if (cursor === undefined) {
      looks++;
      if (looks > 1 && looks <= 13) {
        const many = Array.from({ length: 600 }, (_, index) => `many-${index}`);
        all = many.map((runId) => ({ ...run, runId, savedAt: at(looks) }));
      }
      if (looks === 15) all = [{ ...run, savedAt: at(looks) }, ...all];
    }
    const from =
      cursor === undefined ? 0 : all.findIndex(({ runId }) => runId === cursor.runId) + 1;
    return all.slice(from, from + (limit ?? all.length));
  });
  const made = studioOf(store);
  const stream = await Connection.to(made);
  const first = stream.id;
  const seen: string[] = [];
  do seen.push((await stream.next()).event);
  while (seen.at(-1) === "reset");
  expect(seen.at(-1)).toBe("run");
  // Two resets; a machine that stands still for seconds may add one.
  expect(seen.length).toBeLessThan(8);
  await stream.close();
  // Whoever was away all the time gets one.
  const back = await Connection.to(made, "/api/events", first);
  expect((await back.next()).event).toBe("reset");
  all = [{ ...run, savedAt: at(100) }, ...all.slice(1)];
  expect(await back.next()).toMatchObject({ event: "run", data: { runId: "before" } });
  await back.close();
});

test("a client that leaves is forgotten; too many are refused", async () => {
  const store = new MemoryStore();
  const made = studioOf(store);
  const streams: Connection[] = [];
  for (let at = 0; at < 100; at++) streams.push(await Connection.to(made));
  await expect(Connection.to(made)).rejects.toThrow("503");
  await streams.pop()?.close();
  streams.push(await Connection.to(made));
  await Promise.all(streams.map((stream) => stream.close()));
});

test("a stream ends with the request's connection, and with the studio", async () => {
  const store = new MemoryStore();
  const { handler } = studioOf(store);
  const leaving = new AbortController();
  const headers = { authorization: `Bearer ${token}` };
  const of = async (signal?: AbortSignal) => {
    const request = new Request("http://localhost/api/events", {
      headers,
      ...(signal && { signal }),
    });
    const reader = (await handler(request)).body?.getReader();
    expect((await reader?.read())?.done).toBe(false);
    return reader;
  };
  const left = await of(leaving.signal);
  const kept = await of();
  leaving.abort();
  expect((await left?.read())?.done).toBe(true);
  const rest = kept?.read();
  await handler.close();
  expect((await rest)?.done).toBe(true);
});

test("the store is not polled while nobody listens", async () => {
  const store = new MemoryStore();
  const runs = vi.spyOn(store, "runs");
  const stream = await Connection.to(studioOf(store));
  await stream.close();
  // What was under way may still end.
  await vi.waitFor(async () => {
    const before = runs.mock.calls.length;
    await new Promise((done) => setTimeout(done, 50));
    expect(runs.mock.calls.length).toBe(before);
  });
});
