import { once } from "node:events";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { articleRun, type Ended, newFolder, project, type World, waymark } from "../harness.js";

/** Starts the studio, gives what it printed, and ends it by Ctrl-C. */
async function during(
  world: World,
  args: readonly string[],
  use: (link: URL, token: string) => Promise<void>,
  port: readonly string[] = ["--port", "0"],
): Promise<Ended> {
  let interrupt = (): void => {};
  let out = "";
  const ended = waymark(
    {
      ...world,
      onStart: (stop) => {
        interrupt = stop;
      },
      onOutput: (text) => {
        out += text;
      },
    },
    ...["studio", ...port, ...args],
  );
  try {
    await Promise.race([ended, vi.waitFor(() => expect(out).toContain("http://"), 30_000)]);
    const [text = ""] = /http:\S+?(?=["\s]|$)/.exec(out) ?? [];
    const link = new URL(text);
    await use(link, link.hash.replace("#token=", ""));
  } finally {
    interrupt();
  }
  return ended;
}

test("the studio serves the API at the link it prints, until Ctrl-C", async () => {
  const cwd = project();
  await articleRun(cwd);
  const { code, out } = await during({ cwd }, [], async (link, token) => {
    expect(link.hostname).toBe("127.0.0.1");
    const headers = { authorization: `Bearer ${token}` };
    const get = (path: string, more = {}) =>
      fetch(new URL(path, link), { headers: { ...headers, ...more } });
    expect((await fetch(new URL("api/runs", link))).status).toBe(401);
    expect(await (await get("api/session")).json()).toMatchObject({
      store: `file:${join(cwd, ".waymark")}`,
      log: true,
      actions: expect.arrayContaining(["retry", "fork"]),
    });
    expect(await (await get("api/runs")).json()).toMatchObject({
      runs: [{ runId: "monday", graph: "article", status: "completed" }],
    });
    expect((await get("api/runs", { origin: "http://evil.example" })).status).toBe(403);
  });
  expect(code).toBe(0);
  expect(out).toContain("#token=");
});

test("the studio prints its address as JSON, and is read-only on request", async () => {
  const cwd = newFolder();
  const args = ["--json", "--read-only", "--store", "sqlite:runs.db"];
  const { out } = await during({ cwd }, args, async (link, token) => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(new URL("api/session", link), { headers });
    expect(await response.json()).toMatchObject({ readOnly: true, actions: [] });
  });
  expect(JSON.parse(out)).toMatchObject({
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/#token=/),
    readOnly: true,
  });
});

test("the studio listens beyond this machine only with a token, which it never prints", async () => {
  const cwd = newFolder();
  const refused = await waymark(cwd, "studio", "--host", "0.0.0.0");
  expect([refused.code, refused.err]).toEqual([2, expect.stringContaining("needs --token")]);
  const port = await waymark(newFolder(), "studio", "--port", "65536");
  expect(port).toMatchObject({
    code: 2,
    err: 'waymark: --port must be an integer from 0 to 65535; got "65536"\n',
  });
  const short = await waymark(cwd, "studio", "--token", "short");
  expect([short.code, short.err]).toEqual([2, expect.stringContaining("16 characters")]);
  expect(short.err).not.toContain('short"');

  const env = { WAYMARK_STUDIO_TOKEN: "correct-horse-battery" };
  const { out, err } = await during({ cwd, env }, ["--host", "0.0.0.0"], async (link) => {
    const headers = { authorization: "Bearer correct-horse-battery" };
    const port = link.port;
    const get = (host: string) =>
      fetch(`http://127.0.0.1:${port}/api/runs`, { headers: { ...headers, host } });
    expect((await get(`127.0.0.1:${port}`)).status).toBe(200);
  });
  expect(out + err).not.toContain("correct-horse");
});

test("a browser opens from a terminal, unless disabled", async () => {
  const cwd = newFolder();
  const seen = join(cwd, "seen");
  const browser = join(cwd, "browser");
  writeFileSync(
    browser,
    `#!/bin/sh\nprintf %s "$1" > '${seen}.part' && mv '${seen}.part' '${seen}'\n`,
  );
  chmodSync(browser, 0o755);
  const env = { BROWSER: browser };
  await during({ cwd, env, columns: 200 }, ["--no-open"], async () => {});
  expect(existsSync(seen)).toBe(false);
  await during({ cwd, env, columns: 200 }, [], async (link) => {
    await vi.waitFor(() => expect(readFileSync(seen, "utf8")).toBe(link.href), 20_000);
  });
});

test("a graph that can't be loaded does not stop the studio", async () => {
  const cwd = newFolder();
  writeFileSync(join(cwd, "waymark.config.mjs"), 'export default { graphs: { a: "./gone.mjs" } };');
  const { err, code } = await during({ cwd }, [], async (link, token) => {
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(new URL("api/runs", link), { headers })).status).toBe(200);
  });
  expect([code, err]).toEqual([0, expect.stringContaining("runs can't be continued from here")]);
});

test("the default program opens the link if no browser is named", async () => {
  const cwd = newFolder();
  const seen = join(cwd, "seen");
  for (const name of ["open", "xdg-open"]) {
    const script = `#!/bin/sh\nprintf %s "$1" > '${seen}.part' && mv '${seen}.part' '${seen}'\n`;
    writeFileSync(join(cwd, name), script);
    chmodSync(join(cwd, name), 0o755);
  }
  vi.stubEnv("PATH", `${cwd}:${process.env.PATH}`);
  try {
    await during({ cwd, columns: 200 }, [], async (link) => {
      await vi.waitFor(() => expect(readFileSync(seen, "utf8")).toBe(link.href), 20_000);
    });
  } finally {
    vi.unstubAllEnvs();
  }
});

test("the studio contains nothing the config redacts", async () => {
  const cwd = project("file:.waymark", 'redact: ["data.topic"]');
  await articleRun(cwd);
  const { out } = await during({ cwd }, ["--read-only"], async (link, token) => {
    const headers = { authorization: `Bearer ${token}` };
    const state = await fetch(
      new URL("api/runs/monday/state?path=[%22data%22,%22topic%22]", link),
      {
        headers,
      },
    );
    expect(state.status).toBe(200);
    expect(await state.text()).not.toContain("cairns");
  });
  expect(out).toContain("(read-only)");
});

test("at a given address the studio answers to that name and the allowed ones", async () => {
  const cwd = newFolder();
  const token = "correct-horse-battery";
  const args = ["--host", "127.1", "--token", token];
  const headers = { authorization: `Bearer ${token}` };
  const status = async (link: URL) =>
    (await fetch(`http://127.0.0.1:${link.port}/api/runs`, { headers })).status;
  await during({ cwd }, args, async (link) => expect(await status(link)).toBe(403));
  const allowed = [...args, "--allow-host", "127.0.0.1"];
  await during({ cwd }, allowed, async (link) => expect(await status(link)).toBe(200));
});

test("a port in use is reported, and without --port another is chosen", async () => {
  const cwd = newFolder();
  await during({ cwd }, [], async (link) => {
    const second = await waymark(cwd, "studio", "--port", link.port);
    expect([second.code, second.err]).toEqual([1, expect.stringContaining("can't listen")]);
  });
  const usual = createServer().listen(4200, "127.0.0.1");
  // Where something else has it, it is taken as well.
  await once(usual, "listening").catch(() => {});
  try {
    const look = async (link: URL, token: string) => {
      expect(link.port).not.toBe("4200");
      const headers = { authorization: `Bearer ${token}` };
      expect((await fetch(new URL("api/runs", link), { headers })).status).toBe(200);
    };
    await during({ cwd }, [], look, []);
  } finally {
    usual.close();
  }
});
