/**
 * Checkpoints that nobody can read without a key, and key rotation: new checkpoints are written with the new
 * key, old ones are still read with the old one, and once no checkpoint needs it, the old key is removed.
 *
 * Run it: npx tsx examples/encrypted-store/main.ts
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ExportedCheckpoint, isWaymarkError, pause, State, StateGraph } from "waymark";
import type { EncryptOptions } from "waymark/codecs";
import { FileStore } from "waymark/stores/file";

interface Patient {
  readonly name: string;
  readonly diagnosis: string;
}

const root = await mkdtemp(join(tmpdir(), "waymark-encrypted-"));
const [oldKey, newKey] = [randomBytes(32), randomBytes(32)];

const storeWith = (encrypt: EncryptOptions): FileStore =>
  new FileStore({ root, keep: 2, codec: { compress: "brotli", encrypt } });

const graphWith = (store: FileStore) =>
  new StateGraph<Patient>({
    name: "patient",
    checkpoint: { store, interval: 1, preserve: true, keep: 2 },
  })
    .addNode("admit", (state) => pause(state, { reason: "waits for the doctor", ask: "diagnosis" }))
    .addNode("discharge", (state) => state)
    .addEdge("admit", "discharge")
    .setEntryPoint("admit")
    .setExitPoint("discharge");

/** The key of each checkpoint on the disk. It stands in the header, which is not encrypted. */
async function keysOnDisk(title: string): Promise<string[]> {
  console.log(title);
  const keys: string[] = [];
  const runIds = (await readdir(root)).filter((name) => !name.startsWith("."));
  for (const runId of runIds.sort()) {
    const files = (await readdir(join(root, runId))).filter((name) => name.endsWith(".json"));
    for (const file of files.sort()) {
      const bytes = await readFile(join(root, runId, file));
      // With a space: three letters may stand in what is encrypted by chance.
      assert.ok(!bytes.includes("Ada King") && !bytes.includes("scurvy"), "nothing can be read");
      const key = JSON.parse(bytes.toString()).header.codec?.key ?? "none";
      keys.push(key);
      console.log(`  ${runId}/${file}  ${key}`);
    }
  }
  return keys;
}

try {
  // A key may be a function too, which gets it from where it is kept.
  const before = storeWith({ current: "2029", keys: { "2029": async () => oldKey } });
  for (const runId of ["ada", "bob"]) {
    await graphWith(before).execute(State.create({ name: "Ada King", diagnosis: "" }, { runId }));
  }
  assert.deepEqual(new Set(await keysOnDisk("With the first key")), new Set(["2029"]));

  const both = storeWith({ current: "2030", keys: { "2029": oldKey, "2030": newKey } });
  const final = await graphWith(both).resume("ada", { input: { diagnosis: "scurvy" } });
  assert.equal(final.data.diagnosis, "scurvy");
  await keysOnDisk('With a second key, after "ada" was resumed');

  // Runs that nobody resumes are taken out and put back, until no checkpoint needs the old key.
  for (const runId of await both.list()) {
    const checkpoints: ExportedCheckpoint[] = [];
    for await (const checkpoint of both.export(runId)) checkpoints.push(checkpoint);
    await both.delete(runId);
    await both.import(checkpoints);
  }
  await both.close();
  assert.deepEqual(new Set(await keysOnDisk("After all were written anew")), new Set(["2030"]));

  const after = storeWith({ current: "2030", keys: { "2030": newKey } });
  const bob = await graphWith(after).resume("bob", { input: { diagnosis: "none" } });
  console.log(`Without the old key: "bob" is ${bob.status}`);
  assert.equal(bob.status, "completed");

  const thief = storeWith({ current: "2030", keys: { "2030": randomBytes(32) } });
  const error = await thief.load("bob").catch((thrown: unknown) => thrown);
  console.log(`With a wrong key: ${error instanceof Error ? error.message : "it was read"}`);
  assert.ok(isWaymarkError(error));
} finally {
  await rm(root, { recursive: true, force: true });
}
