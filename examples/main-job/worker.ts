/** One process: starts the run, or continues it if it is on disk, and sends its events. */
import { State } from "waymark";
import { type Article, articleGraph } from "./article.js";

const [root = "", runId = "", endless = ""] = process.argv.slice(2);

await articleGraph(root, endless)
  .on("*", (event) => process.send?.(event))
  .resumeOrStart(State.create<Article>({ topic: "cairns", parts: [] }, { runId }));
process.disconnect?.();
