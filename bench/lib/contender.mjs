import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { isQuick } from "./quick.mjs";

const script = fileURLToPath(new URL("./contender-process.mjs", import.meta.url));

/**
 * The `sample` and `close` of a contender that runs in a process of its own and gives µs per step.
 *
 * Its own process, because contenders slow each other down: once LangGraph.js has used AsyncLocalStorage, every
 * await of the process costs half as much again on Node 20, the floor's too.
 * @param {string} file in contenders/; its `run` is `(steps, options) => steps it made`
 * @param {number} steps
 * @param {object} [options]
 */
export function microsPerStep(file, steps, options = {}) {
  const { runs = 1 } = options;
  const taken = isQuick() ? runs * Math.ceil(steps / runs / 10) : steps;
  let child;
  return {
    sample: () => {
      child ??= fork(script, [
        new URL(`../contenders/${file}.mjs`, import.meta.url).href,
        JSON.stringify(options),
      ]);
      return answer(child, taken, file);
    },
    close: () => child?.disconnect(),
  };
}

function answer(child, steps, file) {
  return new Promise((resolve, reject) => {
    const onExit = (code) => reject(new Error(`contender ${file} ended with ${code}`));
    child.once("exit", onExit);
    child.once("message", (micros) => {
      child.off("exit", onExit);
      resolve(micros);
    });
    child.send(steps);
  });
}
