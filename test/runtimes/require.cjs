// The package, by require().
const { END, State, StateGraph } = require("waymark");
const { FileStore } = require("waymark/stores/file");

const graph = new StateGraph({
  checkpoint: { store: new FileStore({ root: process.argv[2] }), interval: 1 },
})
  .addNode("add", (state) => ({ n: state.data.n + 1 }))
  .addEdge("add", END)
  .setEntryPoint("add");

graph.execute(State.create({ n: 1 })).then(({ status, data }) => console.log(status, data.n));
