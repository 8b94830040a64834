/** One process: starts the run, or goes on with it if it is on the disk, and tells what it does. */
import { State } from "waymark";
import { type Article, articleGraph } from "./article.js";
import type { Message } from "./message.js";

const [root = "", runId = ""] = process.argv.slice(2);
const tell = (message: Message): unknown => process.send?.(message);

const graph = articleGraph(root)
  .on("checkpoint.resume", ({ data }) =>
    tell({ type: "resumed", after: data.node, step: data.step }),
  )
  .on("node.start", ({ data }) => tell({ type: "started", node: data.node }))
  .on("checkpoint.save", ({ data }) =>
    tell({ type: "saved", node: data.node, sequence: data.sequence }),
  );

const final = await graph.resumeOrStart(
  State.create<Article>({ topic: "cairns", parts: [] }, { runId }),
);
tell({ type: "ended", status: final.status, parts: final.data.parts });
process.disconnect?.();
