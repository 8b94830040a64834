import type { Command } from "../command.js";

type Loader = () => Promise<{ readonly command: Command }>;

/** How to load each command, grouped by purpose. Only the commands in use are loaded. */
const groups: Readonly<Record<string, Readonly<Record<string, Loader>>>> = {
  "See runs": {
    list: () => import("./list.js"),
    show: () => import("./show.js"),
    history: () => import("./history.js"),
    state: () => import("./state.js"),
    diff: () => import("./diff.js"),
    graph: () => import("./graph.js"),
    stats: () => import("./stats.js"),
    studio: () => import("./studio.js"),
  },
  "Check and repair": {
    validate: () => import("./validate.js"),
    repair: () => import("./repair.js"),
    doctor: () => import("./doctor.js"),
    explain: () => import("./explain.js"),
  },
  "Run and continue": {
    run: () => import("./run.js"),
    resume: () => import("./resume.js"),
    answer: () => import("./answer.js"),
    replay: () => import("./replay.js"),
    fork: () => import("./fork.js"),
    rollback: () => import("./rollback.js"),
    recover: () => import("./recover.js"),
  },
  "Follow a run": {
    watch: () => import("./watch.js"),
    log: () => import("./log.js"),
  },
  "Keep and move": {
    delete: () => import("./delete.js"),
    prune: () => import("./prune.js"),
    convert: () => import("./convert.js"),
    export: () => import("./export.js"),
    import: () => import("./import.js"),
  },
  More: {
    completion: () => import("./completion.js"),
  },
};

const loaders = Object.values(groups).flatMap((group) => Object.entries(group));

/** The names of all commands, in the order in which the help lists them. */
export const commandNames: readonly string[] = loaders.map(([name]) => name);

/** The commands of these names, in that order. */
export async function loadCommands(names: readonly string[]): Promise<readonly Command[]> {
  const wanted = loaders.filter(([name]) => names.includes(name));
  return Promise.all(wanted.map(async ([, load]) => (await load()).command));
}

/** The heading under which the help lists a command. */
export function groupOf(name: string): string {
  const [group = ""] = Object.entries(groups).find(([, one]) => Object.hasOwn(one, name)) ?? [];
  return group;
}
