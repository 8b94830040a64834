// What a bundler makes of this runs in a browser.
import { END, MemoryStore, State, StateGraph } from "waymark";

const store = new MemoryStore();
let online = false;
const graph = new StateGraph({ checkpoint: { store, interval: 1, preserve: true } })
  .addNode("list", () => ({ pages: ["/a"] }))
  .addNode("fetch", (state) => {
    if (!online) throw new Error("offline");
    return { pages: state.data.pages.map((page) => `${page}.html`) };
  })
  .addEdge("list", "fetch")
  .addEdge("fetch", END)
  .setEntryPoint("list");

await graph.execute(State.create({ pages: [] }, { runId: "r" })).catch(() => {});
online = true;
const { status, data } = await graph.resume("r");
document.title = `${status} ${data.pages.join()}`;
