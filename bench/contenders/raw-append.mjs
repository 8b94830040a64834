import * as fs from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { newFolder } from "../folder.mjs";
import { conversation, replaceOne } from "../messages.mjs";

const write = promisify(fs.write);
const fdatasync = promisify(fs.fdatasync);

let file;

export function prepare() {
  if (file !== undefined) fs.closeSync(file);
  file = fs.openSync(join(newFolder(), "log"), "a");
}

/**
 * The floor of a journal: what a step changes as JSON, at the end of a file, flushed.
 * @param {number} steps of all runs together
 * @param {object} options
 * @param {number} options.kilobytes the size of a state
 * @param {number} [options.runs] how many runs at once; those that wait share a write and a flush
 * @param {boolean} [options.blocking] with calls that stop the event loop
 */
export async function run(steps, { kilobytes, runs = 1, blocking = false }) {
  const append = blocking ? appendBlocking : runs === 1 ? appendAlone : appendShared;
  const each = steps / runs;
  await Promise.all(
    Array.from({ length: runs }, async () => {
      let state = conversation(kilobytes);
      while (state.n < each) {
        state = replaceOne(state);
        const { n, messages } = state;
        await append(`${JSON.stringify({ n, message: messages[n % messages.length] })}\n`);
      }
    }),
  );
  return steps;
}

function appendBlocking(line) {
  fs.writeSync(file, line);
  fs.fdatasyncSync(file);
}

async function appendAlone(line) {
  await write(file, line);
  await fdatasync(file);
}

let waiting = [];
let writing = false;

function appendShared(line) {
  return new Promise((resolve) => {
    waiting.push({ line, resolve });
    if (!writing) drain();
  });
}

async function drain() {
  writing = true;
  while (waiting.length > 0) {
    await new Promise((resolve) => setImmediate(resolve));
    const batch = waiting;
    waiting = [];
    await write(file, batch.map(({ line }) => line).join(""));
    await fdatasync(file);
    for (const { resolve } of batch) resolve();
  }
  writing = false;
}
