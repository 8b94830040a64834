import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  CheckpointConflictError,
  CheckpointSaveError,
  ConfigError,
  END,
  State,
  StateGraph,
} from "waymark";
import { type IoRedisClient, RedisStore, type RedisStoreOptions } from "waymark/stores/redis";
import { bundle, removeBundle } from "../../crash/bundle.js";
import { rejection } from "../../graphs.js";
import { until } from "../../worker/world.js";
import { ALWAYS, type RedisServer, startRedis, withRedis } from "./server.js";

interface Count {
  readonly n: number;
}

/** Loads packages as if only this one were installed. */
const only =
  (installed: string) =>
  async (name: string): Promise<unknown> => {
    if (name !== installed) throw Object.assign(new Error(name), { code: "ERR_MODULE_NOT_FOUND" });
    return name === "redis" ? import("redis") : import("ioredis");
  };

withRedis("faults of a Redis server", () => {
  let server: RedisServer;
  let admin: Redis;
  let prefixes = 0;
  let prefix = "";
  const open = (options: RedisStoreOptions = {}): RedisStore => {
    prefix = `faults:${++prefixes}`;
    return new RedisStore({
      prefix,
      ...(options.client === undefined && { url: server.url }),
      ...options,
    });
  };
  const first = (store: RedisStore): Promise<State<Count>> =>
    State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(store);
  const key = (rest: string): string => `{${prefix}:0}:${rest}`;

  let claimer: Awaited<ReturnType<typeof bundle>>;
  const warnings: string[] = [];
  const hear = ({ message }: Error): number => warnings.push(message);

  beforeAll(async () => {
    process.on("warning", hear);
    server = await startRedis(ALWAYS);
    admin = new Redis(server.url);
    const external = ["ioredis", "redis"];
    claimer = await bundle("claimer", join(import.meta.dirname, "fixtures"), external);
  });
  afterAll(async () => {
    process.off("warning", hear);
    removeBundle(claimer);
    admin.disconnect();
    await server.stop();
  });

  test("reloads scripts that the server has lost", async () => {
    const store = open();
    const state = await first(store);
    await admin.script("FLUSH");
    expect((await state.set("n", 1).checkpoint(store)).sequence).toBe(2);
    await store.close();
  });

  test("full memory is reported as such, and the run resumes once there is room", async () => {
    const store = open();
    let isFull = true;
    const graph = new StateGraph<Count>({
      checkpoint: { store, interval: 1, preserve: true },
    })
      .addNode("one", async () => {
        if (isFull) await admin.config("SET", "maxmemory", "1");
        return { n: 1 };
      })
      .addNode("two", (state) => ({ n: state.data.n + 1 }))
      .addEdge("one", "two")
      .addEdge("two", END)
      .setEntryPoint("one");
    const state = State.create<Count>({ n: 0 });
    try {
      const error = await rejection(graph.execute(state), CheckpointSaveError);
      expect(error.message).toContain("was not saved");
      expect(error.message).toContain("OOM");
      expect(error.message).toContain("raise maxmemory");
    } finally {
      await admin.config("SET", "maxmemory", "0");
    }
    isFull = false;
    expect((await graph.resume(state.runId)).data.n).toBe(2);
    await store.close();
  });

  test("a read-only server is retried until it accepts writes or time runs out", async () => {
    const store = open({ retryFor: 100 });
    let state = await first(store);
    await admin.call("REPLICAOF", "127.0.0.1", "1");
    const error = await rejection(state.set("n", 1).checkpoint(store), CheckpointSaveError);
    expect(error.message).toContain("was not saved");
    expect(error.message).toContain("connect to the primary");
    const patient = new RedisStore({ url: server.url, prefix, retryFor: 60_000 });
    state = await patient.load<Count>("run");
    const saving = state.set("n", 2).checkpoint(patient);
    await admin.call("REPLICAOF", "NO", "ONE");
    expect((await saving).sequence).toBe(2);
    await Promise.all([store.close(), patient.close()]);
  });

  test.each([
    ["a url", () => ({})],
    ["ioredis", () => ({ client: new Redis(server.url) })],
    ["redis", () => ({ client: createClient({ url: server.url }) })],
  ] as const)("a silent server is abandoned: %s", async (_, connect) => {
    const connection: { client?: Redis | ReturnType<typeof createClient> } = connect();
    const store = open({ ...connection, statementTimeout: 1000 });
    const state = await first(store);
    process.kill(server.pid, "SIGSTOP");
    try {
      const error = await rejection(state.set("n", 1).checkpoint(store), CheckpointSaveError);
      expect(error.message).toContain("may not have been saved");
      expect(error.message).toContain("statementTimeout (1000 ms)");
    } finally {
      process.kill(server.pid, "SIGCONT");
    }
    await until("it answers", () => admin.ping().then(() => true));
    // Whether it was saved or not, the next one comes after it.
    const next = await state.set("n", 2).checkpoint(store);
    expect((await store.load<Count>("run")).checkpointId).toBe(next.checkpointId);
    await store.close();
    const { client } = connection;
    if (client instanceof Redis) client.disconnect();
    else client?.destroy();
  });

  test("an unreachable server is known to have saved nothing", async () => {
    const gone = await startRedis();
    const store = open({ url: gone.url, retryFor: 0 });
    const state = await first(store);
    await gone.kill();
    const error = await rejection(state.set("n", 1).checkpoint(store), CheckpointSaveError);
    expect(error.cause).toMatchObject({ code: "ECONNREFUSED" });
    expect(error.message).toContain("was not saved");
    await gone.restart();
    // It kept nothing on its disk: all is lost, and a later State does not pass for the first.
    await rejection(state.set("n", 1).checkpoint(store), CheckpointConflictError);
    expect(await store.list()).toEqual([]);
    await store.close();
    await gone.stop();
  });

  test("a process stopped beyond its claim can't write when it wakes up", async () => {
    const store = open({ prefix: "waymark" });
    const child = fork(claimer.script, [server.url, "run", "3000"]);
    const heard = async (): Promise<{ epoch?: number; code?: string }> =>
      (await once(child, "message"))[0];
    try {
      const { epoch = 0 } = await heard();
      expect(await store.claim("run")).toBeUndefined();
      expect((await store.holder("run"))?.pid).toBe(child.pid);
      child.kill("SIGSTOP");
      let taken = await store.claim("run");
      await until("its claim ends", async () => {
        taken ??= await store.claim("run");
        return taken !== undefined;
      });
      expect(taken?.epoch).toBeGreaterThan(epoch);
      const answer = heard();
      child.send("save");
      child.kill("SIGCONT");
      expect(await answer).toEqual({ code: "CHECKPOINT_CONFLICT" });
      const state = await store.load<Count>("run");
      expect(state.data.n).toBe(0);
      expect((await state.set("n", 1).checkpoint(store)).sequence).toBe(2);
      await taken?.release();
    } finally {
      child.kill("SIGKILL");
      await store.delete("run");
      await store.close();
    }
  });

  test("the claim of a dead process on this machine is free at once", async () => {
    const store = open({ prefix: "waymark" });
    const child = fork(claimer.script, [server.url, "run", "600000"]);
    try {
      const [{ epoch }] = await once(child, "message");
      expect(await store.claim("run")).toBeUndefined();
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
      expect(await store.holder("run")).toBeUndefined();
      const claim = await store.claim("run");
      expect(claim?.epoch).toBeGreaterThan(epoch);
      expect((await store.holder("run"))?.pid).toBe(process.pid);
      await claim?.release();
    } finally {
      child.kill("SIGKILL");
      await store.delete("run");
      await store.close();
    }
  });

  test.each(["ioredis", "redis"] as const)(
    "%s: a wrong password and a missing database are refused",
    async (used) => {
      await admin.acl("SETUSER", "me", "on", ">right", "~*", "+@all");
      const listed = async (change: (url: URL) => void): Promise<string> => {
        const url = new URL(server.url);
        change(url);
        const store = new RedisStore({ url: url.href }, only(used));
        const answer = await store.list().then(
          (runs) => `${runs.length} runs`,
          (error: unknown) => String(error),
        );
        await store.close();
        return answer;
      };
      const as = (password: string) => (url: URL) =>
        Object.assign(url, { username: "me", password });
      expect(await listed(as("right"))).toBe("0 runs");
      expect(await listed(as("wrong"))).toMatch(
        /WRONGPASS .*\(the user or the password is wrong\)/,
      );
      expect(await listed((url) => (url.pathname = "/99"))).toMatch(/DB index is out of range/);
    },
  );

  test.each(["ioredis", "redis"] as const)(
    "%s: a server that accepts a connection and then stays silent is abandoned",
    async (used) => {
      const options = { url: server.url, statementTimeout: 1000, retryFor: 0 };
      const store = new RedisStore({ ...options, prefix: "silent" }, only(used));
      process.kill(server.pid, "SIGSTOP");
      try {
        await expect(store.list()).rejects.toMatchObject({
          code: "STORE",
          message: expect.stringContaining("statementTimeout (1000 ms)"),
        });
      } finally {
        process.kill(server.pid, "SIGCONT");
      }
      await until("it answers", () => admin.ping().then(() => true));
      expect(await store.list()).toEqual([]);
      await store.close();
    },
  );

  test("finished runs expire together with their index entries, unless claimed", async () => {
    const store = open({ finishedTtl: 3_600_000 });
    const graph = new StateGraph<Count>({ checkpoint: { store, interval: 1, preserve: true } })
      .addNode("one", () => ({ n: 1 }))
      .addEdge("one", END)
      .setEntryPoint("one");
    const { runId, checkpointId } = await graph.execute(State.create<Count>({ n: 0 }));
    const kept = await graph.execute(State.create<Count>({ n: 0 }));
    const claim = await store.claim(kept.runId, { ttl: 60_000 });
    expect(await admin.pttl(key(`run:${kept.runId}`))).toBe(-1);
    await claim?.release();
    expect(await admin.pttl(key(`run:${kept.runId}`))).toBeGreaterThan(0);
    // The hour is over for one of them.
    const own = [key(`run:${runId}`)];
    const ids = (await store.history(runId)).map((entry) => entry.checkpointId);
    own.push(...ids.map((id) => key(`checkpoint:${JSON.stringify(id)}`)));
    for (const one of own) {
      expect(await admin.pttl(one)).toBeGreaterThan(0);
      await admin.del(one);
    }
    expect(await store.find(checkpointId)).toBeUndefined();
    expect(await store.list()).toEqual([kept.runId]);
    expect((await store.runs()).map((run) => run.runId)).toEqual([kept.runId]);
    // The next that finishes removes what is left in the indexes.
    for (const member of await admin.zrange(key("expiring"), 0, -1)) {
      await admin.zadd(key("expiring"), 0, member);
    }
    const last = await graph.execute(State.create<Count>({ n: 0 }));
    const left = [kept.runId, last.runId].sort();
    expect((await admin.smembers(key("all"))).sort()).toEqual(left);
    expect((await admin.zrange(key("runs:completed:graph"), 0, -1)).sort()).toEqual(left);
    for (const one of left) await store.delete(one);
    const keys = await admin.keys(key("*"));
    expect(keys.filter((one) => !/:(graphs|expiring)$/.test(one))).toEqual([]);
    await store.close();
  });

  test("a damaged record is found and set aside, and the previous one is used", async () => {
    const store = open();
    const state = await first(store);
    await state.set("n", 1).checkpoint(store);
    await admin.hset(key("run:run"), "c2", "spoiled");
    const findings = [];
    for await (const finding of store.verify()) findings.push(finding);
    expect(findings).toMatchObject([{ runId: "run", sequence: 2, problem: "corrupt" }]);
    const loaded = await store.load<Count>("run", {}, { emit: () => {} });
    expect(loaded.data.n).toBe(0);
    const fields = await admin.hkeys(key("run:run"));
    expect(fields.filter((field) => /\d/.test(field)).sort()).toEqual(["-2", "1", "c-2", "c1"]);
    expect((await loaded.set("n", 2).checkpoint(store)).sequence).toBe(3);
    await admin.hset(key("run:run"), "3", "spoiled");
    expect(await store.runs()).toMatchObject([{ runId: "run", status: "pending", node: "" }]);
    await store.close();
  });

  test("a read-only store writes nothing", async () => {
    const store = open();
    const state = await first(store);
    const reader = new RedisStore({ url: server.url, prefix, readOnly: true });
    expect((await reader.load<Count>("run")).data.n).toBe(0);
    await rejection(state.set("n", 1).checkpoint(reader), ConfigError);
    await rejection(reader.claim("run"), ConfigError);
    await rejection(reader.delete("run"), ConfigError);
    await Promise.all([store.close(), reader.close()]);
  });

  test("durability is checked on first use", async () => {
    const bare = await startRedis();
    const on = (durability: "aof" | "replicas"): RedisStore => open({ url: bare.url, durability });
    expect((await rejection(first(on("aof")), ConfigError)).message).toContain("appendonly yes");
    expect((await rejection(first(on("replicas")), ConfigError)).message).toContain("no replica");
    await admin.config("SET", "appendfsync", "everysec");
    const version = /redis_version:(\d+)\.(\d+)/.exec(await admin.info("server")) ?? [];
    const saving = first(open({ durability: "aof" }));
    if (Number(version[1]) * 100 + Number(version[2]) >= 702) expect(await saving).toBeDefined();
    else expect((await rejection(saving, ConfigError)).message).toContain("Redis 7.2");
    await admin.config("SET", "appendfsync", "always");
    await bare.stop();
  });

  test("a server without persistence, or with eviction, causes a warning", async () => {
    const bare = await startRedis();
    await first(open({ url: bare.url }));
    const client = new Redis(bare.url);
    await client.config("SET", "maxmemory-policy", "allkeys-lru");
    await first(open({ client }));
    await client.config("SET", "maxmemory-policy", "noeviction", "save", "60 1");
    await first(open({ client }));
    const all = ["keeps nothing on a disk", "maxmemory-policy noeviction", "its last snapshot"];
    // Each once in a process, so perhaps in a test before this.
    await until("all are heard", () =>
      all.every((text) => warnings.filter((one) => one.includes(text)).length === 1),
    );
    client.disconnect();
    await bare.stop();
  });

  test("a save waits for a replica and fails if none has it", async () => {
    await admin.config("SET", "repl-diskless-sync-delay", "0");
    const replica = await startRedis(["--replicaof", "127.0.0.1", String(server.port)]);
    await until("it is connected", async () =>
      (await admin.info("replication")).includes("state=online"),
    );
    for (const client of [createClient({ url: server.url }), new Redis(server.url)]) {
      const store = open({ client, durability: "replicas", statementTimeout: 6000 });
      const state = await first(store);
      const copy = new Redis(replica.url);
      expect(await copy.exists(key("run:run"))).toBe(1);
      copy.disconnect();
      await admin.script("FLUSH");
      const runs = Array.from({ length: 20 }, (_, n) =>
        State.create<Count>({ n }).checkpoint(store),
      );
      expect(await Promise.all(runs)).toHaveLength(20);
      if (client instanceof Redis) {
        process.kill(replica.pid, "SIGSTOP");
        try {
          const error = await rejection(state.set("n", 1).checkpoint(store), CheckpointSaveError);
          expect(error.message).toContain("may not have been saved");
          expect(error.message).toContain("no replica has what was saved, after 3000 ms");
        } finally {
          process.kill(replica.pid, "SIGCONT");
        }
        expect((await state.set("n", 2).checkpoint(store)).sequence).toBe(3);
      }
      await store.close();
      if (client instanceof Redis) client.disconnect();
      else client.destroy();
    }
    await replica.stop();
  });

  test("a save waits for the append-only file if the server supports it", async () => {
    const sent: string[] = [];
    let synced = [1, 0];
    const client = new Redis(server.url);
    // As a server of 7.2 that syncs once a second.
    const newer: IoRedisClient = {
      call: async (command, ...args) => {
        const reply = await client.call(command, ...args);
        return String(reply).replace(/redis_version:[\d.]+/, "redis_version:7.2.0");
      },
      pipeline: (commands) => ({
        exec: async () => {
          const known = commands.filter(([, name]) => name !== "WAITAOF" && name !== "CONFIG");
          const replies = (await client.pipeline(known).exec()) ?? [];
          return commands.map(([, name = ""]) => {
            sent.push(name);
            if (name === "CONFIG") return [null, ["appendfsync", "everysec"]];
            return name === "WAITAOF" ? [null, synced] : (replies.shift() ?? [null, null]);
          });
        },
      }),
    };
    const store = open({ client: newer, durability: "aof" });
    const state = await first(store);
    expect(sent).toEqual(["CONFIG", "CLIENT", "evalsha", "evalsha", "WAITAOF", "CLIENT"]);
    synced = [0, 0];
    const error = await rejection(state.set("n", 1).checkpoint(store), CheckpointSaveError);
    expect(error.message).toContain("the append-only file does not have what was saved");
    client.disconnect();
  });

  test("an invalid client or address is refused without showing a password", () => {
    const make = (options: object) => () => new RedisStore(options as RedisStoreOptions);
    expect(make({})).toThrow("RedisStore.client must be set, or url");
    expect(make({ client: {} })).toThrow("RedisStore.client must be a client or a cluster");
    expect(make({ url: "http://me:secret@host" })).toThrow('got "http:…"');
    expect(make({ url: 7 })).toThrow("RedisStore.url must be");
    expect(make({ url: server.url, client: admin })).toThrow(
      "must not be set together with client",
    );
    expect(make({ url: server.url, prefix: "{a}" })).toThrow("RedisStore.prefix");
  });

  test("the package redis is used if ioredis is missing, and it is an error if both are", async () => {
    const store = new RedisStore({ url: server.url, prefix: "other" }, only("redis"));
    expect((await first(store)).sequence).toBe(1);
    await store.close();
    expect(await store.list()).toEqual(["run"]);
    await store.close();
    const none = new RedisStore({ url: server.url }, only("neither"));
    expect((await rejection(first(none), ConfigError)).message).toContain("npm install ioredis");
  });
});
