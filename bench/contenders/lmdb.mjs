import { open } from "lmdb";
import { newFolder } from "../folder.mjs";
import { conversation, replaceOne } from "../messages.mjs";

let database;

export async function prepare() {
  await database?.close();
  database = open({ path: newFolder() });
}

/** Each state whole into LMDB, waited for until it is flushed; options as of raw-append.mjs. */
export async function run(steps, { kilobytes, runs = 1 }) {
  const each = steps / runs;
  await Promise.all(
    Array.from({ length: runs }, async (_, index) => {
      let state = conversation(kilobytes);
      while (state.n < each) {
        state = replaceOne(state);
        await database.put([index, state.n], state);
        await database.flushed;
      }
    }),
  );
  return steps;
}
