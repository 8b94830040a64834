import { createHash } from "node:crypto";
import type { ExportedCheckpoint } from "../../checkpoint/store.js";
import type { StateJSON } from "../../state/json.js";
import { State } from "../../state/state.js";
import { problem } from "../exit.js";

/*
 * A run as a file: a header line, then a line for each checkpoint, oldest first. Each has a hash of its State's
 * JSON, so that a truncated or modified file is detected.
 *
 *   {"waymark":"export","format":1,"runId":"…","checkpoints":5}
 *   {"sha256":"…","parentId":"…","state":{…}}
 */
const FORMAT = 1;

interface Head {
  readonly waymark: "export";
  readonly format: number;
  readonly runId: string;
  readonly checkpoints: number;
}

/** A run as the lines of such a file. */
export async function toArchive(
  runId: string,
  checkpoints: AsyncIterable<ExportedCheckpoint>,
  toJson: (state: State<object>) => StateJSON,
): Promise<{ readonly text: string; readonly count: number }> {
  const lines: string[] = [];
  for await (const { state, parentId } of checkpoints) {
    const json = JSON.stringify(toJson(state));
    const sha256 = JSON.stringify(hashOf(parentId, json));
    lines.push(`{"sha256":${sha256},"parentId":${JSON.stringify(parentId)},"state":${json}}`);
  }
  const count = lines.length;
  const head: Head = { waymark: "export", format: FORMAT, runId, checkpoints: count };
  return { text: `${[JSON.stringify(head), ...lines].join("\n")}\n`, count };
}

/** A run read from such a file. */
export interface Archive {
  readonly runId: string;
  readonly checkpoints: readonly ExportedCheckpoint[];
}

/**
 * Reads and verifies an exported run.
 *
 * @throws CommandError if it is not an intact export.
 */
export function fromArchive(text: string, file: string): Archive {
  const [first = "", ...lines] = text.trimEnd().split("\n");
  const head = parse(first) as Partial<Head> | undefined;
  if (head?.waymark !== "export" || typeof head.runId !== "string") {
    throw problem(`${file} is not an export of a run`, "waymark export RUN writes one");
  }
  if (head.format !== FORMAT) {
    throw problem(`${file} has format ${head.format}; this waymark reads ${FORMAT}`);
  }
  if (head.checkpoints !== lines.length) {
    throw problem(`${file} has ${lines.length} checkpoints; ${head.checkpoints} were exported`);
  }
  const { runId } = head;
  const checkpoints = lines.map((line, at): ExportedCheckpoint => {
    const found = parse(line) as { sha256?: unknown; parentId?: unknown; state?: StateJSON };
    const parentId = String(found?.parentId ?? "");
    const json = JSON.stringify(found?.state) ?? "";
    if (found?.sha256 !== hashOf(parentId, json) || found.state?.runId !== runId) {
      throw problem(`${file} is corrupt: line ${at + 2} was changed since the export`);
    }
    return { state: State.fromJSON<object>(json), parentId };
  });
  return { runId, checkpoints };
}

function hashOf(parentId: string, json: string): string {
  return createHash("sha256").update(parentId).update("\n").update(json).digest("hex");
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
