/**
 * The studio: a web page that shows the runs of a store, here sample runs. With --serve it stays open while
 * more runs are under way.
 *
 * Run it: npx tsx examples/studio/main.ts, or npm run studio for the page
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { State } from "waymark";
import { eventLog } from "waymark/observers/event-log";
import { FileStore } from "waymark/stores/file";
import { nodeListener, type StudioApi, studio } from "waymark/studio";
import { newArticle } from "./graphs.js";
import { damage, graphsOf, makePast, makeRuns } from "./runs.js";

const isServing = process.argv.includes("--serve");
const root = await mkdtemp(join(tmpdir(), "waymark-studio-"));
const store = new FileStore({ root });
const observer = eventLog({ root });
await makeRuns({ store, observer, ...(isServing && { pace: 8 }) });
if (isServing) {
  await makePast(store, 14, 12);
  const { article } = graphsOf({ store });
  await article.execute(State.create(newArticle("ice"), { runId: "article-ice" }));
  await damage(root, "article-ice");
}

const graphs = graphsOf({ store, observer, pace: isServing ? 60 : 1 });
const handler = studio({
  store,
  name: `file:${root}`,
  graphs: Object.values(graphs),
  log: { root },
});
const server = createServer(nodeListener(handler)).listen(isServing ? 4200 : 0, "127.0.0.1");
await once(server, "listening");
const { port } = server.address() as AddressInfo;
const url = `http://127.0.0.1:${port}`;

try {
  if (isServing) {
    console.log(`${url}/#token=${handler.token}\n\nCtrl-C ends it.`);
    const stop = new AbortController();
    process.once("SIGINT", () => stop.abort());
    for (let number = 1; !stop.signal.aborted; number++) {
      const state = State.create(newArticle(`lakes, part ${number}`), {
        metadata: { customer: "hooli", region: "us" },
      });
      await graphs.article.execute(state, stop).catch(() => "it was stopped");
      await wait(2000, undefined, stop).catch(() => "so was this");
    }
  } else {
    const headers = { authorization: `Bearer ${handler.token}` };
    const response = await fetch(`${url}/api/runs`, { headers });
    const { runs } = (await response.json()) as StudioApi["GET /api/runs"]["answer"];
    for (const { runId, graph, status } of runs.toSorted((a, b) => (a.graph < b.graph ? -1 : 1))) {
      console.log(`${graph.padEnd(16)}${status.padEnd(13)}${runId}`);
    }
    const without = await fetch(`${url}/api/runs`);
    console.log(`without its token: ${without.status}`);
    assert.equal(runs.length, 7);
    assert.equal(without.status, 401);
  }
} finally {
  server.close();
  await handler.close();
  server.closeAllConnections();
  await observer.close();
  await rm(root, { recursive: true });
}
