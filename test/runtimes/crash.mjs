// A run that its own process kills in the third of four nodes, and that a second process resumes.
//
//   crash.mjs ADDRESS start|resume
import { State, StateGraph } from "waymark";

const [, , store, action] = process.argv;

const mark = (name) => (state) => state.set("trail", [...state.data.trail, name]);

const graph = new StateGraph({ name: "trip", checkpoint: { store, interval: 1, preserve: true } })
  .addNode("pack", mark("pack"))
  .addNode("drive", mark("drive"))
  .addNode("cross", (state) => {
    if (action === "start") process.kill(process.pid, "SIGKILL");
    return state.update((draft) => {
      draft.trail.push("cross");
      draft.crossed.set("at", new Date(0));
    });
  })
  .addNode("arrive", mark("arrive"))
  .addEdge("pack", "drive")
  .addEdge("drive", "cross")
  .addEdge("cross", "arrive")
  .setEntryPoint("pack")
  .setExitPoint("arrive");

if (action === "start") {
  await graph.execute(State.create({ trail: [], crossed: new Map() }, { runId: "trip" }));
} else {
  const { status, step, data } = await graph.resume("trip");
  const crossed = data.crossed.get("at") instanceof Date;
  console.log(status, step, data.trail.join(","), crossed ? "typed" : "untyped");
}
