import { join } from "node:path";
import Database from "libsql";
import { newFolder } from "../lib/folder.mjs";
import { conversation, replaceOne } from "../workloads/messages.mjs";

let path;
let database;
let statements;

export function prepare({ what = "save", kilobytes, synchronous = "FULL" }) {
  if (what !== "save" && database !== undefined) return;
  database?.close();
  path = join(newFolder(), "raw.db");
  database = new Database(path);
  database.exec(`
    PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; PRAGMA wal_autocheckpoint = 4000;
    CREATE TABLE runs (run INTEGER PRIMARY KEY, sequence INTEGER, status TEXT, saved_at TEXT);
    CREATE TABLE checkpoints (run INTEGER, sequence INTEGER, body TEXT);
    CREATE UNIQUE INDEX by_run ON checkpoints (run, sequence);
  `);
  statements = {
    begin: database.prepare("BEGIN IMMEDIATE"),
    commit: database.prepare("COMMIT"),
    start: database.prepare("INSERT INTO runs VALUES (?, 0, 'in_progress', '')"),
    advance: database.prepare(
      "UPDATE runs SET sequence = ?, saved_at = ? WHERE run = ? AND sequence = ?",
    ),
    insert: database.prepare("INSERT INTO checkpoints VALUES (?, ?, ?)"),
  };
  if (what === "load") {
    statements.insert.run(0, 1, JSON.stringify(conversation(kilobytes)));
  }
}

/**
 * The floor of a store in SQLite: a transaction that inserts what a step changes and updates the run's row, flushed.
 * @param {number} steps of all runs together
 * @param {object} options
 * @param {number} options.kilobytes the size of a state
 * @param {number} [options.runs] how many runs at once; those that wait share a transaction
 * @param {"save" | "load"} [options.what] `load` reads a whole state back and parses it
 * @param {boolean} [options.opened] on a database that is open already
 * @param {"FULL" | "NORMAL"} [options.synchronous]
 */
export async function run(steps, { kilobytes, runs = 1, what = "save", opened = false }) {
  if (what === "load") return loads(steps, opened);
  const each = steps / runs;
  for (let index = 0; index < runs; index++) statements.start.run(index);
  const save = runs === 1 ? saveAlone : saveShared;
  await Promise.all(
    Array.from({ length: runs }, async (_, index) => {
      let state = conversation(kilobytes);
      while (state.n < each) {
        state = replaceOne(state);
        const { n, messages } = state;
        const body = JSON.stringify({ n, message: messages[n % messages.length] });
        await save({ index, n, body });
      }
    }),
  );
  return steps;
}

function transaction(batch) {
  const { begin, commit, advance, insert } = statements;
  begin.run();
  for (const { index, n, body } of batch) {
    if (advance.run(n, new Date().toISOString(), index, n - 1).changes !== 1)
      throw new Error("a run is not where it should be");
    insert.run(index, n, body);
  }
  commit.run();
}

async function saveAlone(change) {
  transaction([change]);
}

let waiting = [];

function saveShared(change) {
  return new Promise((resolve) => {
    waiting.push({ ...change, resolve });
    if (waiting.length === 1) setImmediate(drain);
  });
}

function drain() {
  const batch = waiting;
  waiting = [];
  transaction(batch);
  for (const { resolve } of batch) resolve();
}

const newest = "SELECT body FROM checkpoints WHERE run = ? ORDER BY sequence DESC LIMIT 1";

function loads(steps, opened) {
  const statement = opened && database.prepare(newest);
  for (let step = 0; step < steps; step++) {
    if (opened) {
      JSON.parse(statement.get(0).body);
      continue;
    }
    const other = new Database(path);
    JSON.parse(other.prepare(newest).get(0).body);
    other.close();
  }
  return steps;
}
