import pg from "pg";
import { conversation, replaceOne } from "../messages.mjs";

// What measures has no more to ask.
process.on("disconnect", () => process.exit());

let pool;
let table;

export async function prepare({ url }) {
  pool ??= new pg.Pool({ connectionString: url, max: 10 });
  table = `raw_${process.pid}`;
  await pool.query(`DROP TABLE IF EXISTS ${table}`);
  await pool.query(
    `CREATE TABLE ${table} (run text, sequence bigint, body jsonb, PRIMARY KEY (run, sequence))`,
  );
}

/**
 * The floor of a store in Postgres: an INSERT of what a step changes, or of all of the state, prepared once.
 * @param {number} steps of all runs together
 * @param {object} options
 * @param {string} options.url the server
 * @param {number} options.kilobytes the size of a state
 * @param {number} [options.runs] how many runs at once
 * @param {boolean} [options.whole] insert all of the state
 */
export async function run(steps, { kilobytes, runs = 1, whole = false }) {
  const each = steps / runs;
  const text = `INSERT INTO ${table} (run, sequence, body) VALUES ($1, $2, $3)`;
  await Promise.all(
    Array.from({ length: runs }, async (_, index) => {
      let state = conversation(kilobytes);
      while (state.n < each) {
        state = replaceOne(state);
        const { n, messages } = state;
        const body = whole ? state : { n, message: messages[n % messages.length] };
        await pool.query({ name: "raw", text, values: [`run-${index}`, n, JSON.stringify(body)] });
      }
    }),
  );
  return steps;
}
