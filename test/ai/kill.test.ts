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

const stores = ["file", "sqlite"];

/** The calls that happened, in their order. */
const done = (said: readonly string[]): string[] =>
  said.flatMap((line) => (line.startsWith("did ") ? line.slice("did ".length) : []));

/** The calls that were saved: each is before the line that says so. */
const saved = (said: readonly string[]): string[] => done(said.slice(0, said.lastIndexOf("saved")));

describe.each(stores)("an agent on the %s store", (store) => {
  test.each([
    // Eleven calls of the model and ten of the tool.
    ["generate", 10],
    ["stream", 2],
  ])(
    "that is killed at every boundary (%s, %i tools) repeats only the call in flight",
    {
      timeout: 600_000,
    },
    async (mode, tools) => {
      const run = (name: string, lines: number) => {
        const path = join(built.folder, `${store}-${mode}-${name}`);
        return runAndKill([built.script, store, path, mode, `${tools}`, `${lines}`], {});
      };
      const undisturbed = await run("undisturbed", 0);
      const calls = done(undisturbed.said);
      expect(calls.length).toBe(tools * 2 + 1);
      expect(new Set(calls).size).toBe(calls.length);
      const boundaries = undisturbed.said.length - 1;
      expect(boundaries).toBeGreaterThanOrEqual(calls.length * 3);

      async function killedAt(lines: number): Promise<void> {
        const first = await run(`${lines}`, lines);
        expect([lines, first.killed]).toEqual([lines, true]);
        const second = await run(`${lines}`, 0);
        const repeated = done(second.said).filter((call) => done(first.said).includes(call));
        expect([lines, repeated.filter((call) => saved(first.said).includes(call))]).toEqual([
          lines,
          [],
        ]);
        expect([lines, repeated.length <= 1]).toEqual([lines, true]);
        expect(new Set([...done(first.said), ...done(second.said)])).toEqual(new Set(calls));
        // The same messages, outputs and ledger.
        expect(second.said.at(-1)).toBe(undisturbed.said.at(-1));
      }

      for (let lines = 1; lines <= boundaries; lines += 2) {
        await Promise.all([killedAt(lines), lines < boundaries && killedAt(lines + 1)]);
      }
    },
  );
});
