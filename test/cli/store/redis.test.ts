import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ALWAYS, type RedisServer, startRedis, withRedis } from "../../stores/redis/server.js";
import { articleRun, type Ended, json, project, waymark } from "../harness.js";

const PASSWORD = "pa55word";

withRedis("the command on Redis", () => {
  let server: RedisServer;
  const at = (database: number, password = PASSWORD): string =>
    `redis://:${password}@127.0.0.1:${server.port}/${database}`;
  const shown = (database: number): string => at(database, "***");

  /** Calls the command, and sees to it that the password is nowhere in what it prints. */
  const safely = async (folder: string, ...args: string[]): Promise<Ended> => {
    const ended = await waymark(folder, ...args);
    expect(ended.out + ended.err).not.toContain(PASSWORD);
    return ended;
  };

  beforeAll(async () => {
    server = await startRedis([...ALWAYS, "--requirepass", PASSWORD]);
  });

  afterAll(() => server.stop());

  test("a server without saves has no runs, and reading writes nothing", async () => {
    const folder = project(at(1));
    expect(await safely(folder, "list")).toMatchObject({
      code: 0,
      out: `no runs in ${shown(1)}\n`,
      err: "",
    });
    expect((await safely(folder, "show", "monday")).code).toBe(3);
    expect((await safely(folder, "validate")).code).toBe(0);
    expect((await safely(folder, "stats")).code).toBe(0);
    expect(await json(folder, "prune", "--max-runs", "0", "--dry-run")).toMatchObject({
      removed: [],
    });
    const client = new Redis(at(1));
    expect(await client.dbsize()).toBe(0);
    client.disconnect();
  });

  test("runs are listed, shown, compared, checked, counted and removed", async () => {
    const folder = project(at(2));
    await articleRun(folder);
    await articleRun(folder, "tuesday");
    expect((await safely(folder, "list")).out).toMatch(
      /tuesday +article +completed.*\nmonday +article +completed +publish +3 .*\$0\.05/,
    );
    expect((await safely(folder, "show", "monday")).out).toMatch(/status +completed\n/);
    expect((await safely(folder, "history", "monday")).out).toMatch(
      /4 +3 +publish +completed +complete .*\n(.*\n){2} +1 +0 +in_progress +start /,
    );
    expect((await safely(folder, "diff", "monday", "1", "2")).out).toContain(
      '+ data.parts.1  "review"',
    );
    expect((await safely(folder, "validate")).out).toBe("8 checkpoints of 2 runs: no problems\n");
    expect(await json(folder, "stats")).toMatchObject({ runs: 2, checkpoints: 8 });
    const { code, out } = await safely(folder, "doctor");
    expect(code).toBe(0);
    expect(out).toContain(`${shown(2)}, 2 runs\n`);
    expect(out).toMatch(/server +Redis [\d.]+, .*B in memory\n/);
    expect(out).toMatch(
      /ok +rights +it accepts saves\nok +durability +it has an append-only file\n/,
    );

    const pruned = await safely(folder, "prune", "--max-runs", "1", "--dry-run");
    expect(pruned.out).toBe("monday\n1 run would be removed\n");
    expect(await json(folder, "stats")).toMatchObject({ runs: 2 });
    expect((await safely(folder, "delete", "monday")).code).toBe(2);
    expect((await safely(folder, "delete", "monday", "--yes")).code).toBe(0);
    const left = await safely(folder, "list");
    expect(left.out).toMatch(/^tuesday /m);
    expect(left.out).not.toContain("monday");
  });

  test("convert copies runs there and back, each checkpoint with its id", async () => {
    const folder = project("file:a");
    await articleRun(folder);
    const there = await safely(folder, "convert", "--from", "file:a", "--to", at(3));
    expect(there.code).toBe(0);
    expect(there.out).toBe(`monday: 4 checkpoints\n1 run copied to ${shown(3)}\n`);
    const back = await safely(folder, "convert", "--from", at(3), "--to", "file:b");
    expect(back.code).toBe(0);
    const ids = async (store: string) =>
      ((await json(folder, "history", "monday", "--store", store)) as object[]).map((entry) =>
        Reflect.get(entry, "checkpointId"),
      );
    const before = await ids("file:a");
    expect(before).toHaveLength(4);
    expect(await ids(at(3))).toEqual(before);
    expect(await ids("file:b")).toEqual(before);
    expect((await safely(folder, "validate", "--store", "file:b")).code).toBe(0);
    const again = await safely(folder, "convert", "--to", at(3));
    expect(again.code).toBe(1);
    expect(again.out).toMatch(/monday: run "monday" is already in this store.*\n0 runs copied/);
  });

  test("an unusable server is reported in one line with the reason and without the password", async () => {
    const folder = project();
    const list = (url: string) => safely(folder, "list", "--store", url);
    const nobody = `redis://me:${PASSWORD}@127.0.0.1:1/0`;
    expect(await list(nobody)).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringMatching(/^waymark: .*ECONNREFUSED.* \(no server answers there; .*\)\n$/),
    });
    const doctor = await safely(folder, "doctor", "--store", nobody);
    expect(doctor.code).toBe(1);
    expect(doctor.out).toMatch(/problem +store .*ECONNREFUSED.* \(no server answers there; start/);
    for (const [url, why] of [
      [at(0, `${PASSWORD}s`), /^waymark: WRONGPASS .*the user or the password is wrong.*\n$/],
      [`redis://127.0.0.1:${server.port}`, /^waymark: NOAUTH .*asks for a password.*\n$/],
      [at(99), /^waymark: .*DB index is out of range.*\n$/],
    ] as const) {
      const { code, out, err } = await list(url);
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err).toMatch(why);
    }
  });
});
