import type { CheckpointStore } from "../../checkpoint/store.js";
import type { CodecOptions } from "../../codecs/pipeline.js";
import { type Address, showAddress } from "./address.js";
import type { DatabaseFacts } from "./read-only-postgres.js";

/** A store that was opened. */
export interface OpenStore {
  readonly store: CheckpointStore;
  /** Where it is; `undefined` for one that the config made itself. */
  readonly address: Address | undefined;
  /** Names it for people. */
  readonly name: string;
  readonly codec: CodecOptions | undefined;
  /** What a database tells of itself. */
  readonly database?: {
    claimed(): Promise<ReadonlySet<string>>;
    facts(): Promise<DatabaseFacts | undefined>;
  };
}

/** What a command will do with a store. A store to read is not written to, whatever is in it. */
export type Mode = "read" | "write";

/**
 * Opens a store. One to write keeps all checkpoints: how many are to be kept is for the graph to
 * say, and this command must not throw away what it would have kept.
 */
export async function openStore(
  address: Address,
  mode: Mode,
  codec: CodecOptions | undefined,
): Promise<OpenStore> {
  const options = { ...(codec !== undefined && { codec }), keep: Number.POSITIVE_INFINITY };
  const opened = { address, name: showAddress(address), codec };
  if ("root" in address) return { ...opened, store: await inFolder(address, mode, options) };
  const client = address.connection;
  if (mode === "write") {
    const { PostgresStore } = await import("../../stores/postgres.js");
    return { ...opened, store: new PostgresStore({ client, ...options }) };
  }
  const { ReadOnlyPostgres } = await import("./read-only-postgres.js");
  const store = new ReadOnlyPostgres({ client, ...options });
  return { ...opened, store, database: store };
}

async function inFolder(
  { kind, root }: Extract<Address, { root: string }>,
  mode: Mode,
  options: { readonly codec?: CodecOptions; readonly keep: number },
): Promise<CheckpointStore> {
  if (kind === "file") {
    const { FileStore } = await import("../../stores/file.js");
    if (mode === "write") return new FileStore({ root, ...options });
    return new FileStore({ root, ...options }, await readOnly());
  }
  const { JournalStore } = await import("../../stores/journal.js");
  if (mode === "write") return new JournalStore({ root, ...options });
  return new JournalStore({ root, ...options }, await readOnly());
}

async function readOnly() {
  const { ReadOnlyFileSystem } = await import("./read-only-file-system.js");
  return new ReadOnlyFileSystem();
}
