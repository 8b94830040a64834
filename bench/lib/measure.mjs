import { besideFolder } from "./beside.mjs";
import { isQuick } from "./quick.mjs";

/** How much slower than beside it a row may be. */
const NOISE = 1.03;

/**
 * One thing that is measured.
 * @typedef {object} Contender
 * @property {string} name
 * @property {"floor" | "ours" | "peer" | "reference"} role the first `floor` and the first `ours` are what ratios are against
 * @property {() => number | Promise<number>} sample one measurement, in the table's unit
 * @property {() => void} [close] called when all rounds are done
 * @property {{ sample: Contender["sample"], close?: Contender["close"] }} [beside] the same of another checkout
 * @property {readonly Goal[]} [goals]
 *
 * What a row has to reach: its value divided by, or less, the value of another row.
 * @typedef {object} Goal
 * @property {string} id as in the list of targets: "P1"
 * @property {string} [times] "floor", "ours" or a row's name: the limit is a ratio to that row
 * @property {string} [minus] the same, but the limit is a difference in the table's unit
 * @property {number} [atMost]
 * @property {number} [atLeast]
 *
 * @typedef {Goal & { actual: number, ok: boolean }} Verdict
 * @typedef {{ name: string, role: string, median: number, fastest: number, slowest: number,
 *   toFloor?: number, toOurs?: number, verdicts: Verdict[] }} Row
 * @typedef {{ title: string, unit: string, rounds: number, rows: Row[] }} Table
 */

/**
 * Measures all contenders in interleaved rounds and takes medians. A ratio is the median of the ratios of each round,
 * so a slow moment of the machine hits both of its sides.
 * @param {{ title: string, unit: string, contenders: readonly (Contender | false | undefined)[], rounds?: number, warmUp?: number }} options
 *   a contender that is `false` or `undefined` is left out
 * @returns {Promise<Table>}
 */
export async function compare({ title, unit, contenders, rounds = 15, warmUp = 3 }) {
  const given = contenders.filter(Boolean);
  const present = besideFolder() === undefined ? given : withBeside(given);
  const samples = new Map(present.map((contender) => [contender, /** @type {number[]} */ ([])]));
  try {
    const [before, after] = isQuick() ? [0, 1] : [warmUp, rounds];
    for (let round = -before; round < after; round++) {
      // Each round starts with another contender, so that none is always the one that follows a heavy one.
      for (let turn = 0; turn < present.length; turn++) {
        const contender = present[(turn + round + before) % present.length];
        const value = await contender.sample();
        if (round >= 0) samples.get(contender).push(value);
      }
    }
  } finally {
    for (const contender of present) contender.close?.();
  }
  return { title, unit, rounds, rows: present.map((contender) => toRow(contender, samples)) };
}

/** The floors and our own contenders, each of which is followed by the same of the other checkout. */
function withBeside(contenders) {
  return contenders.flatMap((contender) => {
    const { name, role, beside } = contender;
    if (role === "floor") return [contender];
    if (role !== "ours" || beside === undefined) return [];
    const other = { name: `${name}, beside`, role: "reference", ...beside };
    return [{ ...contender, goals: [{ id: "beside", times: other.name, atMost: NOISE }] }, other];
  });
}

/** @returns {Row} */
function toRow(contender, samples) {
  const own = samples.get(contender);
  const sorted = [...own].sort((a, b) => a - b);
  const ratioTo = (other) => median(own.map((value, round) => value / other[round]));
  const floor = find("floor", samples);
  const ours = find("ours", samples);
  return {
    name: contender.name,
    role: contender.role,
    median: median(own),
    fastest: sorted[0],
    slowest: sorted[sorted.length - 1],
    ...(floor && { toFloor: ratioTo(floor) }),
    ...(ours && { toOurs: ratioTo(ours) }),
    verdicts: (contender.goals ?? []).flatMap((goal) => judge(goal, own, samples)),
  };
}

/** @returns {Verdict[]} none where the goal is against ours and ours is not there */
function judge(goal, own, samples) {
  const against = goal.times ?? goal.minus;
  const other = against === undefined ? undefined : find(against, samples);
  if (against !== undefined && other === undefined) {
    if (against === "ours") return [];
    throw new Error(`goal ${goal.id} is against "${against}", which is not in its table`);
  }
  const actual = median(
    own.map((value, round) => {
      if (goal.times !== undefined) return value / other[round];
      return goal.minus !== undefined ? value - other[round] : value;
    }),
  );
  const { atMost = Number.POSITIVE_INFINITY, atLeast = Number.NEGATIVE_INFINITY } = goal;
  return [{ ...goal, actual, ok: actual <= atMost && actual >= atLeast }];
}

function find(roleOrName, samples) {
  for (const [contender, values] of samples) {
    if (contender.role === roleOrName || contender.name === roleOrName) return values;
  }
  return undefined;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
