/** node stall-process.mjs <contender> <steps> <options>: prints the longest stall of the event loop, in milliseconds. */
const [file, steps, options] = [process.argv[2], Number(process.argv[3]), process.argv[4]];
const { run, prepare } = await import(new URL(`../contenders/${file}.mjs`, import.meta.url));
const settings = JSON.parse(options);
const TICK = 1;

// The first run compiles the code: what that takes is no stall of the store.
await prepare(settings);
await run(steps, settings);
await prepare(settings);

let longest = 0;
let last = performance.now();
const tick = () => {
  const now = performance.now();
  longest = Math.max(longest, now - last - TICK);
  last = now;
};
const timer = setInterval(tick, TICK);
await run(steps, settings);
tick();
clearInterval(timer);
process.stdout.write(String(longest), () => process.exit());
