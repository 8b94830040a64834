/** What many workers would do and need, worked out of what was measured here, as Markdown. */
import { figure } from "./draw.mjs";
import { tablesOf } from "./tables.mjs";

const counts = [1, 4, 16, 64, 256, 1000];
/** Runs that a worker has under way at once, and nodes of a run. */
const AT_ONCE = 10;
const NODES = 4;
/** How long a node waits, in seconds. */
const waits = [0.1, 1, 10];
/** Connections of one worker here: one that listens, two for the queue, two for the store. */
const CONNECTIONS = 5;

/** What was measured; `undefined` when something is missing. */
function measured(results) {
  const value = (table, row) =>
    tablesOf(results, "workers", table)[0]?.rows.find(({ name }) => row.test(name))?.median;
  const database = (row) => value(/^CPU of the database/, row);
  const worker = (row) => value(/^CPU of the worker/, row);
  const [two, twelve] = [database(/^a run of 2 /), database(/^a run of 12 /)];
  const [ownTwo, ownTwelve] = [worker(/^a run of 2 /), worker(/^a run of 12 /)];
  const found = {
    node: (twelve - two) / 10,
    run: two - (twelve - two) / 5,
    ownNode: (ownTwelve - ownTwo) / 10,
    ownRun: ownTwo - (ownTwelve - ownTwo) / 5,
    idle: database(/without work/),
    held: database(/10 runs that wait/),
    overhead: value(/^one node of a run/, /^in a worker/),
  };
  return Object.values(found).every(Number.isFinite) ? found : undefined;
}

/** Runs in a second, and the database's cores that they need, if nothing but the waiting of nodes is in the way. */
export function predict({ node, run, held, overhead }, workers, seconds) {
  const perSecond = (workers * AT_ONCE) / (NODES * (seconds + overhead / 1_000_000));
  const cores = (perSecond * (run + NODES * node) + workers * held) / 1000;
  return { perSecond, cores };
}

/** The costs, the model, and the model beside what was measured. */
export function workersTables(results) {
  const costs = measured(results);
  if (costs === undefined) return "Not measured yet.";
  return [costsTable(costs), modelTable(costs), ...besideTable(results, costs)].join("\n\n");
}

function costsTable({ node, run, ownNode, ownRun, idle, held }) {
  return [
    "Milliseconds of CPU, of the database and of the worker:",
    "",
    "| | database | worker |",
    "| --- | ---: | ---: |",
    `| a run: queued, taken, claimed, ended | ${figure(run)} | ${figure(ownRun)} |`,
    `| each of its nodes, saved | ${figure(node)} | ${figure(ownNode)} |`,
    `| a worker without work, each second | ${figure(idle)} | |`,
    `| a worker with ${AT_ONCE} runs that wait, each second | ${figure(held)} | |`,
  ].join("\n");
}

function modelTable(costs) {
  const head = waits.flatMap((seconds) => [`${seconds} s: runs/s`, "cores"]);
  const lines = counts.map((workers) => {
    const cells = waits.flatMap((seconds) => {
      const { perSecond, cores } = predict(costs, workers, seconds);
      return [figure(perSecond), figure(cores)];
    });
    return `| ${[workers, ...cells, workers * CONNECTIONS].map(spelt).join(" | ")} |`;
  });
  return [
    `The model: workers with ${AT_ONCE} runs at once, runs of ${NODES} nodes that wait for 0.1, 1 or 10 seconds each; runs in a`,
    "second, and the cores of the database that they keep busy:",
    "",
    `| workers | ${head.join(" | ")} | connections |`,
    `| ---: |${" ---: |".repeat(head.length + 1)}`,
    ...lines,
  ].join("\n");
}

function spelt(cell) {
  return typeof cell === "number" ? cell.toLocaleString("en") : cell;
}

/** The model where the same was measured. */
function besideTable(results, costs) {
  const tables = [
    [0.1, /^runs of 4 nodes that wait for 100 ms/],
    [1, /^the same, but of nodes that wait for 1 s/],
  ];
  const lines = tables.flatMap(([seconds, title]) =>
    (tablesOf(results, "workers", title)[0]?.rows ?? []).map(({ name, median }) => {
      const { perSecond } = predict(costs, Number.parseInt(name, 10), seconds);
      return `| ${name}, nodes of ${seconds} s | ${figure(perSecond)} | ${figure(median)} |`;
    }),
  );
  if (lines.length === 0) return [];
  const said =
    "Beside what was measured, where database, workers and all share this machine's processor:";
  return [
    [said, "", "| | model, runs/s | measured |", "| --- | ---: | ---: |", ...lines].join("\n"),
  ];
}
