import { type NodeFunction, type NodeOptions, type Pause, pause, State, StateGraph } from "waymark";
import { RecordingStore } from "../graphs.js";

export interface Draft {
  text: string;
  yes?: boolean;
  note?: unknown;
}

/** A State that nobody has written to. */
export const draft = (runId = "r"): State<Draft> => State.create<Draft>({ text: "" }, { runId });

/** write → publish, of which `write` pauses as it is told. */
export function graphOf(
  pausing: (state: State<Draft>) => Pause<Draft>,
  store = new RecordingStore(),
  options: NodeOptions<Draft> = {},
) {
  const ran: string[] = [];
  const write: NodeFunction<Draft> = (state) => {
    ran.push("write");
    return pausing(state.set("text", "Cairns"));
  };
  const graph = new StateGraph<Draft>({ checkpoint: { store, interval: 1, preserve: true } })
    .addNode("write", write, options)
    .addNode("publish", (state) => {
      ran.push("publish");
      return state;
    })
    .addEdge("write", "publish")
    .setEntryPoint("write")
    .setExitPoint("publish");
  return { graph, ran, store };
}

/** Asks for a review. */
export const asking = (state: State<Draft>) => pause(state, { reason: "review", ask: "Publish?" });
