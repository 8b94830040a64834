import * as fs from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { newFolder } from "../folder.mjs";
import { conversation, replaceOne } from "../messages.mjs";

// With callbacks and descriptors, which is faster than `fs/promises`.
const open = promisify(fs.open);
const close = promisify(fs.close);
const write = promisify(fs.write);
const fsync = promisify(fs.fsync);
const rename = promisify(fs.rename);
const readFile = promisify(fs.readFile);

let folder;

export function prepare({ load = false }) {
  if (!load || folder === undefined) folder = newFolder();
}

/** The floor of a file store: each state as JSON, to a file of its own that survives a power cut; or read back. */
export function run(steps, { kilobytes, load = false }) {
  return load ? loads(steps, kilobytes) : saves(steps, kilobytes);
}

async function saves(steps, kilobytes) {
  let state = conversation(kilobytes);
  while (state.n < steps) {
    state = replaceOne(state);
    await save(state);
  }
  return state.n;
}

async function save(state) {
  const temporary = join(folder, "temporary");
  const file = await open(temporary, "wx", 0o600);
  await write(file, JSON.stringify(state));
  await fsync(file);
  await close(file);
  await rename(temporary, join(folder, `checkpoint_${String(state.n).padStart(4, "0")}.json`));
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
