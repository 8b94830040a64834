import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newId } from "../../../src/random.js";
import {
  checkpointName,
  folderName,
  goneName,
  goneSequence,
  ownerOf,
  quarantinedSequence,
  quarantineName,
  runOf,
  sequenceOf,
  temporaryName,
} from "../../../src/stores/disk/layout.js";

const runIds = fc.oneof(
  fc.string({ minLength: 1, maxLength: 200 }),
  fc.string({ unit: "binary", minLength: 1, maxLength: 60 }),
  fc.constantFrom("con", "CON", "nul.txt", "com1", "a.", ".a", "..", "~", "%41", "A", "lpt9."),
);

describe("the folder of a run", () => {
  test("is named after a uuid, or an equally harmless id", () => {
    for (const runId of [newId(), "order-17_b", "nightly.2030"]) {
      expect(folderName(runId)).toBe(runId);
    }
  });

  test.each([
    ["../x", "%2e.%2fx"],
    ["..", "%2e%2e"],
    [".hidden", "%2ehidden"],
    ["Run", "%52un"],
    ["con", "%63on"],
    ["com1.log", "%63om1.log"],
    ["console", "console"],
    ["a/b\\c:d", "a%2fb%5cc%3ad"],
    ["100%", "100%25"],
    ["é", "%c3%a9"],
    ["dot.", "dot%2e"],
  ])("for %j is %s", (runId, name) => {
    expect(folderName(runId)).toBe(name);
    expect(runOf(name)).toEqual({ runId });
  });

  test("is safe on every file system and maps back to its run", () => {
    fc.assert(
      fc.property(runIds, (runId) => {
        const name = folderName(runId);
        expect(name).toMatch(/^[a-z0-9_%-][a-z0-9_.%~-]{0,99}$/);
        expect(name).not.toMatch(/\.$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/);
        const run = runOf(name);
        if (run !== "cut") expect(run).toEqual({ runId: runId });
      }),
    );
  });

  test("differs between runs even if their ids differ only in case", () => {
    fc.assert(
      fc.property(runIds, runIds, (one, other) => {
        fc.pre(one !== other);
        expect(folderName(one).toLowerCase()).not.toBe(folderName(other).toLowerCase());
      }),
    );
  });

  test("is truncated for a long id and made unique by a hash", () => {
    const [one, other] = [folderName("山".repeat(200)), folderName(`${"山".repeat(199)}川`)];
    expect(one).not.toBe(other);
    expect(one.length).toBeLessThanOrEqual(100);
    expect(runOf(one)).toBe("cut");
  });

  test.each(["node_modules ", "Run", "%zz", "%41%", ".git", "", "a~b", "%ff"])(
    "%j belongs to no run",
    (name) => {
      expect(runOf(name)).toBeUndefined();
    },
  );
});

describe("the files of a run", () => {
  test("are numbered with four digits, or more if needed", () => {
    expect(checkpointName(7)).toBe("checkpoint_0007.json");
    expect(checkpointName(12345)).toBe("checkpoint_12345.json");
    for (const sequence of [1, 9999, 10_000, Number.MAX_SAFE_INTEGER]) {
      expect(sequenceOf(checkpointName(sequence))).toBe(sequence);
    }
  });

  test.each([
    "checkpoint_7.json",
    "checkpoint_00007.json",
    "checkpoint_0000.json",
    "checkpoint_0007.json.bak",
    "Checkpoint_0007.json",
    "checkpoint_-007.json",
    "events.jsonl",
  ])("do not include %s", (name) => {
    expect(sequenceOf(name)).toBeUndefined();
  });

  test("in quarantine keep their number", () => {
    expect(quarantineName(7, 0)).toBe("checkpoint_0007.json");
    expect(quarantinedSequence(quarantineName(7, 3))).toBe(7);
    expect(quarantinedSequence("notes.txt")).toBeUndefined();
  });

  test("name their writer while they are being written", () => {
    const [one, other] = [temporaryName(7, "12-ab"), temporaryName(7, "12-ab")];
    expect(one).not.toBe(other);
    expect(ownerOf(one)).toBe("12-ab");
    expect(ownerOf("checkpoint_0007.json")).toBeUndefined();
    expect(ownerOf("upload.tmp")).toBeUndefined();
  });

  test("leave a marker that a sequence was used", () => {
    expect(goneName(7)).toBe(".checkpoint_0007.gone");
    expect(goneSequence(goneName(12_345))).toBe(12_345);
    for (const name of [".checkpoint_7.gone", "checkpoint_0007.gone", ".checkpoint_0007.tmp"]) {
      expect(goneSequence(name)).toBeUndefined();
    }
  });
});
