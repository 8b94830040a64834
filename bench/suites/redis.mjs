import { microsPerStep } from "../lib/contender.mjs";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";
import { startRedis } from "../servers/redis.mjs";

export const name = "redis";
export const title = "P15: checkpoints in Redis";

export async function run() {
  const tables = [];
  for (const appendfsync of ["always", "everysec"]) {
    const { socket, stop } = await startRedis(appendfsync);
    try {
      for (const kilobytes of [1, 10, 100]) {
        tables.push(await table(appendfsync, { socket, kilobytes }, 400));
      }
      tables.push(await table(appendfsync, { socket, kilobytes: 10, runs: 100 }, 5000));
    } finally {
      await stop();
    }
  }
  return tables;
}

function table(appendfsync, options, steps) {
  const { kilobytes, runs } = options;
  const who = runs === undefined ? "one run" : `${runs} runs at once`;
  return compare({
    title: `${who}, a state of ${kilobytes} KB, appendfsync ${appendfsync} (${steps} steps)`,
    unit: "µs/step",
    rounds: 5,
    warmUp: 1,
    contenders: [
      {
        name: "one script that is fence and write",
        role: "floor",
        ...microsPerStep("raw-redis", steps, options),
      },
      isBuilt && {
        name: "waymark, RedisStore",
        role: "ours",
        ...microsPerStep("redis", steps, options),
        goals: [{ id: "P15", times: "floor", atMost: 1.3 }],
      },
    ],
  });
}
