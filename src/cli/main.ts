#!/usr/bin/env node
import { exit } from "./exit.js";
import type { Io } from "./io.js";
import { main } from "./program.js";

// Whoever reads may leave early: `waymark log RUN | head`.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(exit.ok);
  process.stderr.write(`waymark: what was found can't be printed: ${error.message}\n`);
  process.exit(exit.problems);
});
// What is said by the way may find no reader; a run does not stop for that.
process.stderr.on("error", () => {});

const io: Io = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  onInterrupt: (handler) => {
    const signals = ["SIGINT", "SIGTERM"] as const;
    for (const signal of signals) process.on(signal, handler);
    return () => {
      for (const signal of signals) process.off(signal, handler);
    };
  },
  exit: (code) => process.exit(code),
};

const code = await main(process.argv.slice(2), io);
// A graph may have left something open that would keep the process; what was printed must get through first.
await Promise.all(
  [process.stdout, process.stderr].map((stream) => new Promise((done) => stream.write("", done))),
);
process.exit(code);
