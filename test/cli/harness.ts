import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import type { Io } from "../../src/cli/io.js";
import { main } from "../../src/cli/program.js";
import { newFolder } from "../stores/folders.js";

export { newFolder };

/** What is different from a pipe in an empty folder. */
export interface World {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether all is a terminal of this width. */
  readonly columns?: number;
  /** What is typed, or piped. */
  readonly input?: string;
  /** Is given what a Ctrl-C does. */
  readonly onStart?: (interrupt: () => void) => void;
  /** Is told each text that is printed to stdout. */
  readonly onOutput?: (text: string) => void;
  /** Is told each text that is printed to stderr. */
  readonly onError?: (text: string) => void;
}

/** How the command ended, and what it printed. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** With what code it left at once, if it did. */
  readonly left: number | undefined;
}

/** Calls the command in this process. */
export async function waymark(world: World | string, ...args: string[]): Promise<Ended> {
  const {
    cwd,
    env = {},
    columns,
    input = "",
    onStart,
    onOutput,
    onError,
  }: World = typeof world === "string" ? { cwd: world } : world;
  let [out, err] = ["", ""];
  let left: number | undefined;
  const tty = columns === undefined ? {} : { isTTY: true, columns };
  const stdin = Object.assign(new PassThrough(), tty);
  stdin.end(input);
  const io: Io = {
    stdin,
    stdout: {
      ...tty,
      write: (text) => {
        out += text;
        onOutput?.(text);
      },
    },
    stderr: {
      ...tty,
      write: (text) => {
        err += text;
        onError?.(text);
      },
    },
    env,
    cwd,
    onInterrupt: (handler) => {
      onStart?.(handler);
      return () => {};
    },
    exit: (code) => {
      left = code;
    },
  };
  const code = await main(args, io);
  return { code, out, err, left };
}

/** The same, with what it printed as JSON. */
export async function json(world: World | string, ...args: string[]): Promise<unknown> {
  const { code, out, err } = await waymark(world, ...args, "--json");
  if (out === "") throw new Error(`exit code ${code}: ${err}`);
  return JSON.parse(out);
}

const graphs = join(import.meta.dirname, "fixtures/graphs.ts");

/** A folder with a config that names the graphs of the fixture, and a store. */
export function project(store = "file:.waymark", more = ""): string {
  const folder = newFolder();
  const config = `import * as graphs from ${JSON.stringify(graphs)};
export default { store: ${JSON.stringify(store)}, graphs: { ...graphs }, ${more} };
`;
  writeFileSync(join(folder, "waymark.config.ts"), config);
  return folder;
}

/** All files below a folder, with their size, time and content: what must stay as it is. */
export function contentOf(folder: string): Readonly<Record<string, string>> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
  return Object.fromEntries(
    names.map((name) => {
      const path = join(folder, name);
      const stats = statSync(path);
      const content = stats.isFile() ? readFileSync(path, "latin1") : "";
      return [name, `${stats.mtimeMs} ${stats.mode} ${content}`];
    }),
  );
}

/** Changes a byte in the middle of a file. */
export function spoil(path: string, at = 0.5): void {
  const bytes = readFileSync(path);
  const index = Math.floor(bytes.length * at);
  bytes[index] = (bytes[index] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

/** Changes a checkpoint where a store keeps it: in a file, or in a row of SQLite. */
export async function damage(
  folder: string,
  store: string,
  runId: string,
  sequence: number,
): Promise<void> {
  const [kind, place = ""] = store.split(":");
  if (kind === "file") return spoil(join(folder, place, runId, `checkpoint_000${sequence}.json`));
  const { default: Database } = await import("libsql");
  const database = new Database(join(folder, place));
  const changed = database
    .prepare(
      "UPDATE checkpoints SET content = content || ' ' WHERE sequence = ? AND run = (SELECT id FROM runs WHERE run_id = ?)",
    )
    .run(sequence, runId);
  database.close();
  if (changed.changes !== 1) throw new Error(`no checkpoint ${sequence} of ${runId}`);
}

/** Writes an empty file, and the folder around it. */
export function touch(folder: string, name: string): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), "");
  return join(folder, name);
}

const data = JSON.stringify({ topic: "cairns", parts: [], token: "s3cret" });

/** A run of `article` that has completed. */
export async function articleRun(folder: string, id = "monday"): Promise<void> {
  const { code, err } = await waymark(folder, "run", "article", "--id", id, "--data", data);
  if (code !== 0) throw new Error(err);
}

/** A run of `phased` that has failed in its last node; it completes once `gate` is in the folder. */
export async function phasedRun(folder: string, id = "monday"): Promise<void> {
  const data = JSON.stringify({ topic: "cairns", parts: [], gate: join(folder, "gate") });
  const { code, err } = await waymark(folder, "run", "phased", "--id", id, "--data", data);
  if (code !== 1) throw new Error(err);
}

/** A run of `slow` that waits in its second node; resolves once it is there. */
export async function slowRun(
  folder: string,
  id = "monday",
): Promise<{ readonly finish: () => Promise<Ended> }> {
  const gate = join(folder, "gate");
  const data = JSON.stringify({ topic: "cairns", parts: [], gate });
  const args = ["run", "slow", "--id", id, "--data", data];
  return new Promise((resolve, reject) => {
    const onError = (text: string): void => {
      if (text.includes("slow  review")) resolve({ finish });
    };
    const running = waymark({ cwd: folder, columns: 80, onError }, ...args);
    const finish = (): Promise<Ended> => {
      touch(folder, "gate");
      return running;
    };
    running.then(({ err }) => reject(new Error(`it never waited: ${err}`)), reject);
  });
}
