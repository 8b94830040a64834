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

/** An open store. */
export interface OpenStore {
  readonly store: CheckpointStore;
  /** Its address; `undefined` for a store object from the config. */
  readonly address: StoreAddress | undefined;
  /** Its name in messages. */
  readonly name: string;
}

/** How a command uses a store. One opened for reading is never written to. */
export type Mode = "read" | "write";

/** How long a command that only reads waits for an unresponsive server, in milliseconds. */
const READ_RETRY = 1000;

/** Parses an address and resolves its paths against a folder; `undefined` if it is not an address. */
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
