import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { FileStore } from "waymark/stores/file";
import { bundle, removeBundle } from "./bundle.js";

type Answer = { sequence: number } | { code: string };

const conflict = { code: "CHECKPOINT_CONFLICT" };
const children: ChildProcess[] = [];
let built: Awaited<ReturnType<typeof bundle>>;
let roots = 0;

beforeAll(async () => {
  built = await bundle("obey");
});

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

afterAll(() => removeBundle(built));

const currentRoot = (): string => join(built.folder, String(roots));

/** A process that does what it is told, with a store on the root that is current. */
class Puppet {
  readonly child: ChildProcess;

  constructor() {
    this.child = fork(built.script, [currentRoot(), "run"]);
    children.push(this.child);
  }

  async tell(order: string): Promise<Answer> {
    this.child.send(order);
    const [answer] = await once(this.child, "message");
    return answer;
  }

  async repeat(order: string, times: number): Promise<Answer | undefined> {
    let answer: Answer | undefined;
    for (let count = 0; count < times; count++) answer = await this.tell(order);
    return answer;
  }
}

describe("two processes on one FileStore", () => {
  const open = (): FileStore => new FileStore({ root: currentRoot() });
  const twoPuppets = (): [Puppet, Puppet] => {
    roots++;
    return [new Puppet(), new Puppet()];
  };

  test("saving at the same time: one wins, a hundred times over", async () => {
    const [first, second] = twoPuppets();
    await first.tell("save");
    for (let sequence = 2; sequence <= 101; sequence++) {
      await Promise.all([first.tell("load"), second.tell("load")]);
      const answers = await Promise.all([first.tell("save"), second.tell("save")]);
      expect(answers.filter((answer) => "sequence" in answer)).toEqual([{ sequence }]);
      expect(answers).toContainEqual(conflict);
    }
    const state = await open().load<{ n: number }>("run");
    expect([state.sequence, state.data.n]).toEqual([101, 101]);
  });

  test("starting a run: one wins", async () => {
    for (let count = 0; count < 3; count++) {
      const [first, second] = twoPuppets();
      const answers = await Promise.all([first.tell("save"), second.tell("save")]);
      expect(answers).toContainEqual({ sequence: 1 });
      expect(answers).toContainEqual(conflict);
    }
  });

  test("one left so far behind that its checkpoints are gone: it gets a conflict", async () => {
    const [first, second] = twoPuppets();
    await first.repeat("save", 3);
    await second.tell("load");
    expect(await second.repeat("save", 40)).toEqual({ sequence: 43 });
    expect(await first.tell("save")).toEqual(conflict);
    await first.tell("load");
    expect(await first.tell("save")).toEqual({ sequence: 44 });
  });

  test("one whose run was deleted: it gets a conflict and does not bring it back", async () => {
    const [first, second] = twoPuppets();
    await first.repeat("save", 3);
    await second.tell("delete");
    expect(await first.tell("save")).toEqual(conflict);
    expect(await open().list()).toEqual([]);
  });

  test("one whose run was deleted and redone to the same sequence: it gets a conflict", async () => {
    const [first, second] = twoPuppets();
    await first.repeat("save", 3);
    await second.tell("delete");
    await second.tell("start");
    expect(await second.repeat("save", 3)).toEqual({ sequence: 3 });
    expect(await first.tell("save")).toEqual(conflict);
    expect(await second.tell("save")).toEqual({ sequence: 4 });
  });

  test("one killed: it does not delay the other", async () => {
    const [first, second] = twoPuppets();
    await first.repeat("save", 3);
    const saving = first.tell("save").catch(() => {});
    first.child.kill("SIGKILL");
    await Promise.race([saving, once(first.child, "exit")]);
    await second.tell("load");
    const answer = await second.tell("save");
    expect([{ sequence: 4 }, { sequence: 5 }]).toContainEqual(answer);
  });
});
