import { produce } from "immer";

/** The bare loop with a draft per step. */
export async function run(steps) {
  const tick = async (state) =>
    produce(state, (draft) => {
      draft.n += 1;
    });
  let state = { n: 0 };
  while (state.n < steps) state = await tick(state);
  return state.n;
}
