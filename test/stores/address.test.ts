import { join } from "node:path";
import { expect, test } from "vitest";
import { ConfigError, getCheckpointStore, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { SqliteStore } from "waymark/stores/sqlite";
import { openStore, parseAddress, showAddress } from "../../src/stores/address.js";
import { thrown } from "../graphs.js";
import { newFolder } from "./folders.js";

test("a mirror's address names its primary, then its copies", () => {
  expect(parseAddress("mirror:sqlite:a.db,file:b")).toEqual({
    scheme: "sqlite",
    location: "a.db",
    replicas: [{ scheme: "file", location: "b" }],
  });
  expect(parseAddress("mirror:file,sqlite,redis://host")?.replicas).toEqual([
    { scheme: "sqlite", location: ".waymark/waymark.db" },
    { scheme: "redis", location: "redis://host" },
  ]);
});

test("a comma inside a path or a URL does not separate stores", () => {
  expect(parseAddress("mirror:file:a,b,postgres://h1,h2/db?application_name=x,y,sqlite:c")).toEqual(
    {
      scheme: "file",
      location: "a,b",
      replicas: [
        { scheme: "postgres", location: "postgres://h1,h2/db?application_name=x,y" },
        { scheme: "sqlite", location: "c" },
      ],
    },
  );
});

test.each([
  "mirror",
  "mirror:",
  "mirror:sqlite:a.db",
  "mirror:sqlite:a.db,tape:b",
  "mirror:memory,sqlite:a.db",
  "mirror:sqlite:a.db,file:",
  "mirror:mirror:file:a,file:b",
])("%s is not an address", (text) => {
  const error = thrown(() => getCheckpointStore(text), ConfigError);
  expect(error.message).toContain("or mirror:STORE,COPY");
});

test("a mirror's address is shown without its stores' passwords", () => {
  const text = "mirror:redis://me:one@a/0,postgres://me:two@b/db,file:/c";
  const address = parseAddress(text);
  expect(address && showAddress(address)).toBe(
    "mirror:redis://me:***@a/0,postgres://me:***@b/db,file:/c",
  );
  const wrong = thrown(() => getCheckpointStore(`${text},redis://me:three@d,file:`), ConfigError);
  expect(wrong.message).not.toMatch(/one|two|three/);
});

test("a store opened by a mirror's address copies its saves and, for reading, opens only the primary", async () => {
  const [primary, copy] = [join(newFolder(), "a.db"), newFolder()];
  const address = `mirror:sqlite:${primary},file:${copy}`;
  const store = getCheckpointStore(address);
  const { runId, checkpointId } = await State.create({ n: 1 }).checkpoint(store);
  await store.close?.();
  expect((await new FileStore({ root: copy }).load(runId)).checkpointId).toBe(checkpointId);
  const parsed = parseAddress(address);
  const reader = parsed && (await openStore(parsed, { readOnly: true }));
  expect(reader).toBeInstanceOf(SqliteStore);
  expect(await reader?.list()).toEqual([runId]);
  await reader?.close?.();
});
