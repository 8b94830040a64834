/* A user's module, whose declaration file has to name or spell out what waymark returns. */
import {
  type CheckpointStore,
  type Ledger,
  type NodeContext,
  type ParallelError,
  pause,
  type RunHandle,
  recoverRuns,
  type State,
  type StateGraph,
  type StepRecord,
} from "waymark";

interface Article {
  text: string;
}

export const ofState = (state: State<Article>) => [
  state.totals,
  state.parent,
  state.graph,
  state.pauses,
  state.error,
  state.steps,
  state.toJSON(),
];
export const ofStep = (step: StepRecord) => [step.items, step.usage];
export const ofLedger = (ledger: Ledger) => [
  ledger.outputs,
  ledger.decisions,
  ledger.agents,
  ledger.usage,
];
export const ofError = (error: ParallelError) => error.errors;
export const ofContext = (context: NodeContext<Article>) => context.ledger;
export const ofGraph = (graph: StateGraph<Article>, state: State<Article>) => [
  graph.topology,
  graph.start(state),
  graph.stream(state, { values: true }),
  graph.history("run"),
];
export const ofHandle = (run: RunHandle<Article>) => [run.status(), run.events()];
export const ofStore = (store: CheckpointStore) => [
  store.runs?.(),
  store.claim?.("run"),
  store.holder?.("run"),
  store.verify?.(),
  store.export?.("run"),
];
export const ofRecovery = (store: CheckpointStore) => recoverRuns({ store, graphs: [] });
export const ofPause = (state: State<Article>) => pause(state, { reason: "review" });
