import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundle, removeBundle } from "../crash/bundle.js";
import { runAndKill } from "../crash/run-and-kill.js";

let built: Awaited<ReturnType<typeof bundle>>;

beforeAll(async () => {
  built = await bundle("agent", join(import.meta.dirname, "fixtures"), [
    "@vercel/oidc",
    "libsql",
    "better-sqlite3",
  ]);
});

afterAll(() => removeBundle(built));

/** The names after a word, in their order. */
const named = (word: string, said: readonly string[]): string[] =>
  said.flatMap((line) => (line.startsWith(`${word} `) ? line.slice(word.length + 1) : []));

const isTorture = process.env.MODE === "torture";

describe.concurrent("an agent that is killed once at every boundary", () => {
  test.each([
    // A loop of twenty-one calls: eleven of the model and ten of the tool.
    ["file", "generate", 10],
    ["file", "stream", isTorture ? 10 : 2],
    ["sqlite", "generate", isTorture ? 10 : 3],
    ["sqlite", "stream", isTorture ? 10 : 1],
  ])(
    "repeats only the call in flight, and comes to the same end (%s, %s, %i tools)",
    {
      timeout: 600_000,
    },
    async (store, mode, tools) => {
      const path = join(built.folder, `${store}-${mode}`);
      const run = (name: string, ...deaths: string[]) =>
        runAndKill([built.script, store, `${path}-${name}`, mode, `${tools}`, ...deaths], {});
      const undisturbed = await run("undisturbed");
      const calls = named("did", undisturbed.said);
      expect(calls.length).toBe(tools * 2 + 1);
      expect(named("saved", undisturbed.said)).toEqual(calls);
      const boundaries = undisturbed.said.slice(0, -1);
      expect(new Set(boundaries).size).toBe(boundaries.length);

      const deaths = `${path}-deaths`;
      writeFileSync(deaths, "");
      const before = { done: new Set<string>(), saved: new Set<string>(), places: new Set() };
      for (let kills = 0; ; kills++) {
        const { said, killed } = await run("killed", deaths);
        const begun = named("begin", said);
        expect([kills, begun.filter((call) => before.saved.has(call))]).toEqual([kills, []]);
        const repeated = named("did", said).filter((call) => before.done.has(call));
        expect([kills, repeated.length <= 1]).toEqual([kills, true]);
        for (const call of named("did", said)) before.done.add(call);
        for (const call of named("saved", said)) before.saved.add(call);
        if (killed) {
          before.places.add(said.at(-1));
          continue;
        }
        // The same messages, outputs and ledger.
        expect(said.at(-1)).toBe(undisturbed.said.at(-1));
        break;
      }
      expect(before.places).toEqual(new Set(boundaries));
      expect(before.done).toEqual(new Set(calls));
    },
  );
});
