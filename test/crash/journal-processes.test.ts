import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { JournalStore } from "waymark/stores/journal";
import { bundle, removeBundle } from "./bundle.js";
import { below, seeded, seedOfRun } from "./random.js";

type Answer = { sequence: number } | { code: string };

const RUNS = 100;
const KILLS = process.env.MODE === "torture" ? 500 : 12;
const conflict = { code: "CHECKPOINT_CONFLICT" };
const children: ChildProcess[] = [];
let obeying: Awaited<ReturnType<typeof bundle>>;
let working: Awaited<ReturnType<typeof bundle>>;
let roots = 0;

beforeAll(async () => {
  obeying = await bundle("journal-obey");
  working = await bundle("journal");
});

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

afterAll(() => {
  removeBundle(obeying);
  removeBundle(working);
});

/** A process that does what it is told, with a store on the root that is current. */
class Puppet {
  readonly #child = fork(obeying.script, [join(obeying.folder, String(roots)), "run", "3000"]);

  constructor() {
    children.push(this.#child);
  }

  async tell(order: string): Promise<Answer> {
    this.#child.send(order);
    const [answer] = await once(this.#child, "message");
    return answer;
  }

  async repeat(order: string, times: number): Promise<Answer | undefined> {
    let answer: Answer | undefined;
    for (let count = 0; count < times; count++) answer = await this.tell(order);
    return answer;
  }
}

function twoPuppets(): [Puppet, Puppet] {
  roots++;
  return [new Puppet(), new Puppet()];
}

test("of two processes that save at the same time, one wins, a hundred times over", async () => {
  const [first, second] = twoPuppets();
  await first.tell("save");
  for (let sequence = 2; sequence <= 101; sequence++) {
    await Promise.all([first.tell("load"), second.tell("load")]);
    const answers = await Promise.all([first.tell("save"), second.tell("save")]);
    expect(answers.filter((answer) => "sequence" in answer)).toEqual([{ sequence }]);
    expect(answers).toContainEqual(conflict);
  }
  const store = new JournalStore({ root: join(obeying.folder, String(roots)) });
  const state = await store.load<{ n: number }>("run");
  expect([state.sequence, state.data.n]).toEqual([101, 101]);
});

test("of two processes that start a run, one wins", async () => {
  for (let count = 0; count < 4; count++) {
    const [first, second] = twoPuppets();
    const answers = await Promise.all([first.tell("save"), second.tell("save")]);
    expect(answers).toContainEqual({ sequence: 1 });
    expect(answers).toContainEqual(conflict);
  }
});

test("one that was left far behind, its log long compacted away, gets a conflict", async () => {
  const [first, second] = twoPuppets();
  await first.repeat("save", 3);
  await second.tell("load");
  expect(await second.repeat("save", 40)).toEqual({ sequence: 43 });
  expect(await first.tell("save")).toEqual(conflict);
  await first.tell("load");
  expect(await first.tell("save")).toEqual({ sequence: 44 });
});

test("one whose run was deleted gets a conflict and does not bring it back", async () => {
  const [first, second] = twoPuppets();
  await first.repeat("save", 3);
  await second.tell("delete");
  expect(await first.tell("save")).toEqual(conflict);
  expect(await new JournalStore({ root: join(obeying.folder, String(roots)) }).list()).toEqual([]);
});

/** Starts a process on all runs and kills it after so many lines; gives all it has said. */
function workAndKill(root: string, lines: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const args = [working.script, root, String(RUNS), "1000000", "100000"];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const said: string[] = [];
    createInterface(child.stdout).on("line", (line) => {
      if (said.push(line) === lines) child.kill("SIGKILL");
    });
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === null) resolve(said);
      else reject(new Error(`the process ended with ${code}`));
    });
  });
}

test("every acknowledged save of a hundred runs at once survives kill -9", {
  timeout: 20_000 + KILLS * 3000,
}, async () => {
  const seed = seedOfRun();
  console.log(`${KILLS} kills with SEED=${seed}`);
  const random = seeded(seed);
  const root = join(working.folder, "data");
  const acknowledged = new Map<string, number>();
  let saves = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const said = await workAndKill(root, RUNS + 1 + below(random, 2500));
    for (const line of said) {
      const [word, runId = "", number] = line.split(" ");
      const known = acknowledged.get(runId) ?? 0;
      if (word === "saved") {
        saves++;
        acknowledged.set(runId, Number(number));
      } else {
        expect([known, known + 1], `kill ${kill}: ${line}`).toContain(Number(number));
      }
    }
    const store = new JournalStore({ root });
    expect((await store.list()).length).toBeGreaterThanOrEqual(acknowledged.size);
    for (const [runId, known] of acknowledged) {
      const { n, list } = (await store.load<{ n: number; list: string[] }>(runId)).data;
      expect([known, known + 1], `kill ${kill}: ${runId}`).toContain(n);
      expect([list.length, list.at(-1)]).toEqual([Math.min(n, 51), `item ${n}`]);
      acknowledged.set(runId, n);
    }
    await store.close();
  }
  expect(saves).toBeGreaterThan(KILLS * 100);
});
