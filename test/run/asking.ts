import {
  type NodeContext,
  type NodeFunction,
  type NodeOptions,
  type State,
  StateGraph,
} from "waymark";
import { RecordingStore, type Trail } from "../graphs.js";

/** A graph of the node `ask` only, that counts how often it ran. */
export function graphOf(
  body: (context: NodeContext<Trail>, state: State<Trail>) => Promise<unknown>,
  options: NodeOptions<Trail> = {},
) {
  const store = new RecordingStore();
  const ran = { times: 0 };
  const node: NodeFunction<Trail> = async (state, context) => {
    ran.times++;
    return { trail: [JSON.stringify(await body(context, state))] };
  };
  const graph = new StateGraph<Trail>({ checkpoint: { store, interval: 1, preserve: true } })
    .addNode("ask", node, options)
    .setEntryPoint("ask")
    .setExitPoint("ask");
  return { graph, store, ran };
}

/** What a run waits for. */
export const names = (state: State<Trail>) => state.pauses.map(({ name }) => name);
