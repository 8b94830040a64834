import { describe, expect, test } from "vitest";
import { ConfigError, MemoryStore, StateGraph } from "waymark";
import { Client, Worker } from "waymark/worker";
import { rejection } from "../graphs.js";

const graph = new StateGraph({ name: "g" })
  .addNode("only", (state) => state)
  .setEntryPoint("only")
  .setExitPoint("only");
const store = new MemoryStore();
const good = { graphs: [graph], store, connection: "postgres://localhost/none", onError: () => {} };

function refusal(make: () => unknown): ConfigError {
  try {
    make();
  } catch (error) {
    if (error instanceof ConfigError) return error;
  }
  throw new Error("it was not refused");
}

describe("a worker refuses", () => {
  test.each([
    [{ graphs: [] }, "options.graphs"],
    [{ graphs: [7] }, "options.graphs[0]"],
    [{ graphs: [graph, graph] }, "options.graphs[1]"],
    [{ graphs: undefined }, "options.graphs"],
    [{ store: {} }, "options.store"],
    [{ store: undefined }, "options.store"],
    [{ connection: "mysql://secret" }, "connection"],
    [{ connection: "secret" }, "connection"],
    [{ connection: {} }, "connection"],
    [{ connection: { url: "postgres://x", schema: "a-b" } }, "connection.schema"],
    [{ connection: { url: "postgres://x", connections: 0 } }, "connection.connections"],
    [{ connection: { url: "redis://x", driver: 1 } }, "connection.driver"],
    [{ connection: 7 }, "connection"],
    [{ concurrency: 0 }, "options.concurrency"],
    [{ lease: 100 }, "options.lease"],
    [{ lease: 2 ** 31 }, "options.lease"],
    [{ maxAttempts: 0 }, "options.maxAttempts"],
    [{ backoff: -1 }, "options.backoff"],
    [{ longestWait: -1 }, "options.longestWait"],
    [{ limits: { other: {} } }, "options.limits.other"],
    [{ limits: { g: { concurrency: 0 } } }, "options.limits.g.concurrency"],
    [{ limits: { g: { rate: { max: 1 } } } }, "options.limits.g.rate.duration"],
    [{ events: false }, "options.events"],
    [{ drainOn: "SIGTERM" }, "options.drainOn"],
    [{ drainOn: ["sigterm"] }, "options.drainOn"],
    [{ drainOn: ["SIGKILL"] }, "options.drainOn"],
    [{ onError: 1 }, "options.onError"],
    [{ leese: 1 }, "options.leese"],
  ])("%j", (given, option) => {
    const error = refusal(() => new Worker({ ...good, ...(given as object) }));
    expect(error.option).toBe(option);
    expect(error.message).not.toContain("secret");
  });

  test.each([
    ["half a surrogate pair", "\ud800"],
    ["the character 0", "a\0b"],
  ])("a graph with %s in its name", async (what, name) => {
    const odd = new StateGraph({ name })
      .addNode("only", (state) => state)
      .setEntryPoint("only")
      .setExitPoint("only");
    const error = refusal(() => new Worker({ ...good, graphs: [odd] }));
    expect(error.message).toContain(what);
  });
});

const missing = (...names: string[]) => {
  return async (name: string): Promise<unknown> => {
    if (names.includes(name))
      throw Object.assign(new Error(name), { code: "ERR_MODULE_NOT_FOUND" });
    return {};
  };
};

test("an invalid address is refused on first use, without showing its password", async () => {
  const connection = "postgres://user:secret@host:99999/db";
  const client = new Client({ connection, store, onError: () => {} });
  const error = await rejection(client.submit("g", {}), ConfigError);
  expect(error.option).toBe("connection");
  expect(error.message).not.toContain("secret");
  await client.close();
});

describe("a missing package", () => {
  test.each([
    ["bullmq", "postgres://localhost/x"],
    ["pg", "postgres://localhost/x"],
    ["ioredis", "redis://localhost"],
  ])("such as %s is named", async (name, connection) => {
    const client = new Client({ connection, store }, missing(name));
    const error = await rejection(client.submit("g", {}), ConfigError);
    expect(error.message).toBe(`connection needs the package ${name}: npm install ${name}`);
    const worker = new Worker({ ...good, connection }, missing(name));
    await rejection(worker.ready(), ConfigError);
    await worker.close();
  });

  test("is distinguished from a broken one, which throws its own error", async () => {
    const client = new Client({ connection: "postgres://x", store }, async () => {
      throw new SyntaxError("broken");
    });
    await expect(client.submit("g", {})).rejects.toThrow("broken");
  });
});

test("a client refuses invalid options", async () => {
  expect(refusal(() => new Client({ connection: "postgres://x" } as never)).option).toBe(
    "options.store",
  );
  const client = new Client({ connection: "postgres://x", store });
  expect((await rejection(client.submit("", {}), ConfigError)).option).toBe("graph");
  expect((await rejection(client.run("", "r"), ConfigError)).option).toBe("graph");
  expect((await rejection(client.run("g", ""), ConfigError)).option).toBe("runId");
  expect((await rejection(client.failed("g", 0), ConfigError)).option).toBe("limit");
  await client.close();
});
