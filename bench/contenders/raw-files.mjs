import * as fs from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { newFolder } from "../lib/folder.mjs";
import { conversation, replaceOne } from "../workloads/messages.mjs";

// With callbacks and descriptors, which is faster than `fs/promises`.
const open = promisify(fs.open);
const close = promisify(fs.close);
const write = promisify(fs.write);
const fsync = promisify(fs.fsync);
const rename = promisify(fs.rename);
const unlink = promisify(fs.unlink);
const readFile = promisify(fs.readFile);

let folder;

export function prepare({ load = false }) {
  if (!load || folder === undefined) folder = newFolder();
}

/**
 * The floor of a file store: each state as JSON, to a file of its own that survives a power cut; or read back.
 * @param {number} steps
 * @param {object} options
 * @param {number} options.kilobytes the size of a state
 * @param {number} [options.keep] how many files to keep; the others are removed on the side
 * @param {boolean} [options.load] read one back
 */
export function run(steps, { kilobytes, keep = steps, load = false }) {
  return load ? loads(steps, kilobytes) : saves(steps, kilobytes, keep);
}

async function saves(steps, kilobytes, keep) {
  let state = conversation(kilobytes);
  let removing;
  while (state.n < steps) {
    state = replaceOne(state);
    await save(state);
    if (state.n > keep) removing = unlink(pathOf(state.n - keep));
  }
  await removing;
  return state.n;
}

const pathOf = (n) => join(folder, `checkpoint_${String(n).padStart(4, "0")}.json`);

async function save(state) {
  const temporary = join(folder, "temporary");
  const file = await open(temporary, "wx", 0o600);
  await write(file, JSON.stringify(state));
  await fsync(file);
  await close(file);
  await rename(temporary, pathOf(state.n));
  const directory = await open(folder, "r");
  await fsync(directory);
  await close(directory);
}

async function loads(steps, kilobytes) {
  const path = join(folder, "checkpoint.json");
  if (!fs.existsSync(path)) fs.writeFileSync(path, JSON.stringify(conversation(kilobytes)));
  for (let step = 0; step < steps; step++) JSON.parse(await readFile(path, "utf8"));
  return steps;
}
