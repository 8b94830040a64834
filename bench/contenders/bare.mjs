import { conversation, replaceOne } from "../workloads/messages.mjs";

/**
 * Nothing but `await fn(state)`; with `kilobytes`, over a conversation of that size, of which each state is kept, as it
 * is or as JSON.
 */
export function run(steps, { kilobytes, json = false }) {
  return kilobytes === undefined ? oneKey(steps) : kept(steps, conversation(kilobytes), json);
}

export async function oneKey(steps) {
  const tick = async (state) => ({ ...state, n: state.n + 1 });
  let state = { n: 0 };
  while (state.n < steps) state = await tick(state);
  return state.n;
}

async function kept(steps, data, json) {
  const saved = new Map();
  const tick = async (state) => ({ ...state, ...replaceOne(state) });
  let state = data;
  while (state.n < steps) {
    state = await tick(state);
    saved.set("run", json ? JSON.stringify(state) : state);
  }
  return state.n;
}
