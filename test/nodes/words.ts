import { chain, State } from "waymark";
import type { ChainOptions, ChainStep } from "../../src/nodes/chain.js";

/** Words to say, and what was said. */
export interface Words {
  readonly todo: readonly string[];
  readonly text: string;
}

/** A State to start from. */
export const words = (...todo: string[]): State<Words> =>
  State.create<Words>({ todo, text: "" }, { runId: "r" });
/** A step. */
export const say: ChainStep<Words, string> = (state, word) =>
  state.set("text", state.data.text + word);
/** A chain of the words to say. */
export const saying = (step = say, options: ChainOptions<Words> = {}) =>
  chain<Words, string>((state) => state.data.todo, step, options);
