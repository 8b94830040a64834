import { Redis } from "ioredis";
import { conversation, replaceOne } from "../workloads/messages.mjs";

// What measures has no more to ask.
process.on("disconnect", () => process.exit());

/** The smallest script that is fence and write: the record and the run's row in one hash, and one index to list by. */
const script = `
if (redis.call('HGET', KEYS[1], 'sequence') or '0') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'sequence', ARGV[2], ARGV[2], ARGV[3])
redis.call('ZADD', KEYS[2], ARGV[4], KEYS[1])
return 1`;

let client;
let sha1;

export async function prepare({ socket }) {
  client ??= new Redis(socket);
  await client.flushall();
  sha1 = await client.script("LOAD", script);
}

/**
 * The floor of a store in Redis: one script call that writes what a step changes, if the run is where it must be.
 * @param {number} steps of all runs together
 * @param {{ socket: string, kilobytes: number, runs?: number }} options
 */
export async function run(steps, { kilobytes, runs = 1 }) {
  const each = steps / runs;
  await Promise.all(
    Array.from({ length: runs }, async (_, index) => {
      let state = conversation(kilobytes);
      while (state.n < each) {
        const before = String(state.n);
        state = replaceOne(state);
        const { n, messages } = state;
        const body = JSON.stringify({ n, message: messages[n % messages.length] });
        const keys = [`run-${index}`, "runs"];
        const savedAt = String(Date.now());
        const done = await client.evalsha(sha1, 2, ...keys, before, String(n), body, savedAt);
        if (done !== 1) throw new Error("the fence is closed");
      }
    }),
  );
  return steps;
}
