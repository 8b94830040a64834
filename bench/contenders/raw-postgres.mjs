import pg from "pg";
import { conversation, replaceOne } from "../workloads/messages.mjs";

// What measures has no more to ask.
process.on("disconnect", () => process.exit());

let pool;
let table;

export async function prepare({ url, what, kilobytes }) {
  pool ??= new pg.Pool({ connectionString: url, max: 10 });
  table = `raw_${process.pid}`;
  await pool.query(`DROP TABLE IF EXISTS ${table}, ${table}_runs`);
  await pool.query(
    `CREATE TABLE ${table} (run text, sequence bigint, body jsonb, PRIMARY KEY (run, sequence))`,
  );
  await pool.query(`CREATE TABLE ${table}_runs (run text PRIMARY KEY, sequence bigint)`);
  if (what !== "load") return;
  const body = JSON.stringify(conversation(kilobytes));
  await pool.query(`INSERT INTO ${table} VALUES ('run-0', 1, $1)`, [body]);
}

/**
 * The floor of a store in Postgres: an INSERT of what a step changes, or of all of the state, prepared once; or a state
 * read back and parsed.
 * @param {number} steps of all runs together
 * @param {object} options
 * @param {string} options.url the server
 * @param {number} options.kilobytes the size of a state
 * @param {number} [options.runs] how many runs at once
 * @param {boolean} [options.whole] insert all of the state
 * @param {boolean} [options.fenced] insert only if the run's row says that this is the next one, and update it
 * @param {"save" | "load"} [options.what]
 */
export async function run(steps, options) {
  const { kilobytes, runs = 1, whole = false, fenced = false, what } = options;
  if (what === "load") return loads(steps);
  const each = steps / runs;
  const text = fenced ? insertAfter(table) : `INSERT INTO ${table} VALUES ($1, $2, $3)`;
  await Promise.all(
    Array.from({ length: runs }, async (_, index) => {
      if (fenced) await pool.query(`INSERT INTO ${table}_runs VALUES ($1, 0)`, [`run-${index}`]);
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

/** The smallest statement that is fence and write. */
function insertAfter(table) {
  return `
    WITH fence AS (
      UPDATE ${table}_runs SET sequence = $2 WHERE run = $1 AND sequence = $2::bigint - 1 RETURNING run
    )
    INSERT INTO ${table} SELECT run, $2, $3::jsonb FROM fence`;
}

async function loads(steps) {
  const text = `SELECT body::text FROM ${table} WHERE run = $1 ORDER BY sequence DESC LIMIT 1`;
  for (let step = 0; step < steps; step++) {
    const { rows } = await pool.query({ name: "load", text, values: ["run-0"] });
    JSON.parse(rows[0].body);
  }
  return steps;
}
