import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { besideFolder } from "./beside.mjs";
import { isQuick } from "./quick.mjs";

const script = fileURLToPath(new URL("./contender-process.mjs", import.meta.url));

/**
 * The `sample` and `close` of a contender that runs in a process of its own and gives µs per step, and `beside`, the
 * same for the build of another checkout if ours is measured beside one.
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
  const other = besideFolder();
  const beside = other && contender(file, taken, options, { ...process.env, WAYMARK_ROOT: other });
  return { ...contender(file, taken, options, process.env), beside };
}

function contender(file, steps, options, env) {
  let child;
  return {
    sample: () => {
      const module = new URL(`../contenders/${file}.mjs`, import.meta.url).href;
      child ??= fork(script, [module, JSON.stringify(options)], { env });
      return answer(child, steps, file);
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
