import { resolve } from "node:path";
import type { CheckpointStore } from "../../checkpoint/store.js";
import type { CodecOptions } from "../../codecs/pipeline.js";
import {
  isServer,
  openStore as openAt,
  parseAddress,
  type StoreAddress,
  showAddress,
} from "../../stores/address.js";

/** A store that was opened. */
export interface OpenStore {
  readonly store: CheckpointStore;
  /** Where it is; `undefined` for one that the config made itself. */
  readonly address: StoreAddress | undefined;
  /** Names it for people. */
  readonly name: string;
}

/** What a command does with a store. One that is opened to read is never written to. */
export type Mode = "read" | "write";

/** How long a command that only reads waits for a server that does not answer, in milliseconds. */
const READ_RETRY = 1000;

/** The address in a text, its paths resolved against a folder; `undefined` if it is none. */
export function addressIn(folder: string, text: string): StoreAddress | undefined {
  const address = parseAddress(text);
  return address && resolved(folder, address);
}

function resolved(folder: string, address: StoreAddress): StoreAddress {
  const { scheme, location, replicas } = address;
  const isPath = scheme !== "memory" && !isServer(address);
  return {
    scheme,
    location: isPath ? resolve(folder, location) : location,
    ...(replicas && { replicas: replicas.map((replica) => resolved(folder, replica)) }),
  };
}

/** Opens a store. */
export async function openStore(
  address: StoreAddress,
  mode: Mode,
  codec: CodecOptions | undefined,
): Promise<OpenStore> {
  const isReader = mode === "read" && address.scheme !== "memory";
  const isRetried = isServer(address) || address.scheme === "pglite";
  const store = await openAt(address, {
    ...(codec !== undefined && { codec }),
    ...(isReader && { readOnly: true }),
    ...(isReader && isRetried && { retryFor: READ_RETRY }),
  });
  return { store, address, name: showAddress(address) };
}
