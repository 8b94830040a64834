import type { Command } from "../command.js";

/** How to load each command. Only what is used is loaded. */
const loaders: Readonly<Record<string, () => Promise<{ readonly command: Command }>>> = {
  list: () => import("./list.js"),
  show: () => import("./show.js"),
  history: () => import("./history.js"),
  state: () => import("./state.js"),
  diff: () => import("./diff.js"),
  validate: () => import("./validate.js"),
  repair: () => import("./repair.js"),
  run: () => import("./run.js"),
  resume: () => import("./resume.js"),
  replay: () => import("./replay.js"),
  fork: () => import("./fork.js"),
  rollback: () => import("./rollback.js"),
  recover: () => import("./recover.js"),
  watch: () => import("./watch.js"),
  log: () => import("./log.js"),
  graph: () => import("./graph.js"),
  prune: () => import("./prune.js"),
  convert: () => import("./convert.js"),
  export: () => import("./export.js"),
  import: () => import("./import.js"),
  doctor: () => import("./doctor.js"),
  completion: () => import("./completion.js"),
};

/** The names of all commands, in the order in which help tells of them. */
export const commandNames: readonly string[] = Object.keys(loaders);

/** The commands of these names, in that order. */
export async function loadCommands(names: readonly string[]): Promise<readonly Command[]> {
  const wanted = Object.entries(loaders).filter(([name]) => names.includes(name));
  return Promise.all(wanted.map(async ([, load]) => (await load()).command));
}
