import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import express from "express";
import { Hono } from "hono";
import { afterEach, expect, test } from "vitest";
import { MemoryStore } from "waymark";
import { nodeListener, studio } from "waymark/studio";
import { serverOf } from "../../src/studio/node.js";
import { pausedRun, token } from "./harness.js";

const servers: Server[] = [];
const authorization = `Bearer ${token}`;

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

async function listening(server: Server): Promise<{ port: number; url: string }> {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}` };
}

/** Sends text as it is, and gives what comes back until the server hangs up. */
async function raw(port: number, text: string): Promise<string> {
  const socket: Socket = connect(port, "127.0.0.1");
  let received = "";
  socket.on("data", (data) => {
    received += data.toString();
  });
  socket.on("error", () => {});
  socket.write(text);
  await once(socket, "close");
  return received;
}

test("a handler works in node:http, with bodies, streams and errors", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const handler = studio({ store, token, pollMs: 10 });
  const { url } = await listening(createServer(nodeListener(handler)));
  const headers = { authorization, "content-type": "application/json" };
  expect((await fetch(`${url}/api/runs`)).status).toBe(401);
  const fork = await fetch(`${url}/api/runs/monday/fork`, {
    ...{ method: "POST", headers, body: JSON.stringify({ data: { topic: "dolmens" } }) },
  });
  expect(fork.status).toBe(200);
  expect((await fetch(`${url}/api/runs`, { method: "HEAD", headers })).status).toBe(200);
  const stream = await fetch(`${url}/api/events`, { headers });
  const reader = stream.body?.getReader();
  expect(new TextDecoder().decode((await reader?.read())?.value)).toContain("event: ready");
  await handler.close();
  expect((await reader?.read())?.done).toBe(true);
});

test("a handler sees where Express has it, and whether the connection is encrypted", async () => {
  const listener = nodeListener(async ({ url }) => new Response(url));
  const mounted = createServer((incoming, outgoing) => {
    // As Express and a TLS socket have it.
    Object.assign(incoming, { originalUrl: incoming.url, url: "/" });
    Object.assign(incoming.socket, { encrypted: true });
    listener(incoming, outgoing);
  });
  const { url } = await listening(mounted);
  expect(await (await fetch(`${url}/runs/api/session`)).text()).toBe(
    "https://localhost/runs/api/session",
  );
});

test("the Host of a raw request is judged, whatever its target says", async () => {
  const { port } = await listening(serverOf(studio({ store: new MemoryStore(), token })));
  const end = `Authorization: ${authorization}\r\nConnection: close\r\n\r\n`;
  const status = async (target: string, host: string) =>
    /^HTTP\/1.1 (\d+)/.exec(
      await raw(port, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${end}`),
    )?.[1];
  expect(await status("/api/runs", `127.0.0.1:${port}`)).toBe("200");
  expect(await status("/api/runs", "evil.example")).toBe("403");
  expect(await status("//evil.example/api/runs", "localhost")).toBe("404");
  expect(await status("http://localhost/api/runs", "evil.example")).toBe("403");
  expect(await raw(port, `GET /api/runs HTTP/1.0\r\n${end}`)).toContain("403");
});

test("a body that is too large ends the connection, unread", async () => {
  const { port } = await listening(serverOf(studio({ store: new MemoryStore(), token })));
  const head =
    `POST /api/runs/x/fork HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\n` +
    "Content-Type: application/json\r\nContent-Length: 999999999\r\n\r\n";
  const answer = await raw(port, `${head}{`);
  expect(answer).toContain("413");
  expect(answer).toContain("TOO_LARGE");
});

const quick = {
  headersTimeout: 100,
  requestTimeout: 200,
  keepAliveTimeout: 100,
  drainTimeout: 100,
  connectionsCheckingInterval: 20,
};

test.each([
  ["headers", "GET / HTTP/1.1\r\nHost: localhost\r\nX-"],
  [
    "a body",
    `POST /api/runs/x/fork HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\n` +
      "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
  ],
])("a client that is slow to send %s is cut off", async (_, text) => {
  const handler = studio({ store: new MemoryStore(), token });
  const { port } = await listening(serverOf(handler, quick));
  expect(await raw(port, text)).not.toContain("200 OK");
});

test("a client that does not read is cut off, and costs no memory", async () => {
  let given = 0;
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const handler = async (): Promise<Response> => {
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        given += 65_536;
        controller.enqueue(new Uint8Array(65_536));
      },
      cancel: () => end(),
    });
    return new Response(body);
  };
  const { port } = await listening(serverOf(handler, quick));
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.pause();
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await ended;
  expect(given).toBeLessThan(64 * 1_048_576);
  socket.destroy();
});

/** What a mounted studio answers: its page, a read, an action. */
async function answersOf(fetched: (path: string, init?: RequestInit) => Promise<Response>) {
  const headers = { authorization, "content-type": "application/json" };
  const page = await fetched("/studio/");
  const runs = await fetched("/studio/api/runs", { headers });
  const body = JSON.stringify({ at: "1" });
  const fork = await fetched("/studio/api/runs/monday/fork", { method: "POST", headers, body });
  const refused = await fetched("/studio/api/runs");
  expect(await runs.json()).toMatchObject({ runs: [{ runId: "monday", status: "paused" }] });
  expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  return [runs.status, fork.status, refused.status];
}

test("a handler is mounted in Hono and in Express, beside routes of their own", async () => {
  const store = new MemoryStore();
  await pausedRun(store, "monday");
  const handler = studio({ store, token, basePath: "/studio" });
  const hono = new Hono();
  hono.all("/studio/*", (context) => handler(context.req.raw));
  hono.get("/own", (context) => context.text("own"));
  const inHono = async (path: string, init?: RequestInit) =>
    hono.request(`http://localhost${path}`, init);
  expect(await answersOf(inHono)).toEqual([200, 200, 401]);
  expect(await (await inHono("/own")).text()).toBe("own");

  const another = new MemoryStore();
  await pausedRun(another, "monday");
  const app = express();
  app.get("/own", (_request, response) => {
    response.send("own");
  });
  app.use(nodeListener(studio({ store: another, token, basePath: "/studio" })));
  const { url } = await listening(createServer(app));
  const inExpress = (path: string, init?: RequestInit) => fetch(`${url}${path}`, init);
  expect(await answersOf(inExpress)).toEqual([200, 200, 401]);
  expect(await (await inExpress("/own")).text()).toBe("own");
});
