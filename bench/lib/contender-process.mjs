/** node contender-process.mjs <module> <options>: for each number of steps it is sent, answers µs per step. */
const { run, prepare } = await import(process.argv[2]);
const options = JSON.parse(process.argv[3]);

process.on("message", async (steps) => {
  // What disturbs a run only ever makes it slower, so a sample is the fastest of three.
  const runs = [await timed(steps), await timed(steps), await timed(steps)];
  process.send(Math.min(...runs));
});

/** No forced collection before it: that throws away compiled code, which hurts the large contenders most. */
async function timed(steps) {
  await prepare?.(options);
  const start = performance.now();
  const made = await run(steps, options);
  const elapsed = performance.now() - start;
  if (made !== steps) throw new Error(`${process.argv[2]} made ${made} of ${steps} steps`);
  return (elapsed * 1000) / steps;
}
