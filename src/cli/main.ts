#!/usr/bin/env node
import { exit } from "./exit.js";
import type { Io } from "./io.js";
import { main } from "./program.js";

// The reader of a pipe may close it early: `waymark log RUN | head`.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(exit.ok);
  process.stderr.write(`waymark: can't write to stdout: ${error.message}\n`);
  process.exit(exit.problems);
});
// A run does not stop because nobody reads its notes.
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
// A graph may have left a handle open that keeps the process alive, so it exits explicitly, once all output is
// written.
await Promise.all(
  [process.stdout, process.stderr].map((stream) => new Promise((done) => stream.write("", done))),
);
process.exit(code);
