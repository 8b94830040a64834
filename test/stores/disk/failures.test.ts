import { expect, test } from "vitest";
import { CheckpointSaveError, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { NodeFileSystem } from "../../../src/stores/disk/node-file-system.js";
import { CrashDisk } from "../../../src/testing/crash-file-system.js";
import { newFolder } from "../folders.js";

/** A store with one run, on a disk of which one kind of call fails from now on. */
async function failingAt(
  failing: string,
  code: string,
  message: string,
  fields: { readonly path?: string } = {},
): Promise<FileStore> {
  const disk = new CrashDisk();
  await new FileStore({ root: "/w" }, disk.mount()).save(State.create({}, { runId: "run" }));
  const gate = (call: string): void => {
    if (call === failing) throw Object.assign(new Error(message), { code, ...fields });
  };
  return new FileStore({ root: "/w" }, disk.mount(gate));
}

test("a claim on a full disk names the problem, the path and the remedy", async () => {
  const store = await failingAt("write", "ENOSPC", "ENOSPC: no space left on device, write");
  await expect(store.claim("run")).rejects.toMatchObject({
    code: "STORE",
    message:
      "/w: ENOSPC: no space left on device, write (the disk or its quota is full: make room, then try again)",
    cause: { code: "ENOSPC" },
  });
  expect(await store.holder("run")).toBeUndefined();
});

test("a load from a broken disk names the file and the remedy", async () => {
  const store = await failingAt("read", "EIO", "EIO: i/o error, read");
  await expect(store.load("run")).rejects.toMatchObject({
    code: "STORE",
    message:
      "/w/run/checkpoint_0001.json: EIO: i/o error, read (the disk reports an error: check it, and the file system)",
    cause: { code: "EIO" },
  });
});

test("listing an unreadable root names it once, with the remedy", async () => {
  const message = "EACCES: permission denied, scandir '/w'";
  const store = await failingAt("readdir", "EACCES", message, { path: "/w" });
  await expect(store.list()).rejects.toMatchObject({
    code: "STORE",
    message: `${message} (give this process the right to read and write there)`,
    cause: { code: "EACCES" },
  });
});

test.each(["write", "readdir"])(
  "a save whose %s fails is a save error with a remedy",
  async (call) => {
    const store = await failingAt(call, "ENOSPC", `ENOSPC: no space left on device, ${call}`);
    const error: unknown = await store.save(State.create({})).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CheckpointSaveError);
    expect(error).toMatchObject({
      message: expect.stringMatching(
        /was not saved in \/w: ENOSPC: .*, \w+ \(the disk or its quota is full: make room/,
      ),
      cause: { code: "ENOSPC" },
    });
  },
);

test("saves where a folder can't be opened to sync it, as on Windows", async () => {
  class WithoutFolders extends NodeFileSystem {
    override async openFolder(): Promise<undefined> {}
  }
  const root = newFolder();
  const store = new FileStore({ root }, new WithoutFolders());
  const saved = await store.save(State.create({ n: 1 }, { runId: "run" }));
  await store.save(saved.set("n", 2));
  expect((await new FileStore({ root }).load<{ n: number }>("run")).data.n).toBe(2);
});
