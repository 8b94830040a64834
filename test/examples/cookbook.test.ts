import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import type { State } from "waymark";
import { PostgresStore } from "waymark/stores/postgres";
import { startServer } from "../stores/postgres/server.js";
import { root } from "./process.js";

// The other recipes run as the blocks of the page that shows them.
test("the nightly run starts when its schedule is due, and its worker drains on SIGTERM", async () => {
  const server = await startServer();
  const recipe = "examples/cookbook/nightly-on-workers.ts";
  const child = spawn(process.execPath, ["--import", "tsx", recipe], {
    cwd: root,
    env: { ...process.env, DATABASE_URL: server.url, REPORT_CRON: "* * * * * *" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const exited = once(child, "exit");
    let line = "";
    for await (line of createInterface(child.stdout)) break;
    child.kill("SIGTERM");
    expect(await exited).toEqual([null, "SIGTERM"]);

    const [, runId = ""] = /^(repeat:nightly:\d+) is written$/.exec(line) ?? [];
    const store = new PostgresStore({ client: server.url });
    const saved: State<{ text: string }> = await store.load(runId);
    await store.close();
    expect(saved.status).toBe("completed");
    expect(saved.data.text).toBe("Sales in north");
  } finally {
    child.kill("SIGKILL");
    await server.stop();
  }
}, 60_000);
