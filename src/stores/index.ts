/**
 * What a store of your own is made from.
 *
 * @packageDocumentation
 */

export { filterRuns } from "../checkpoint/arguments.js";
export {
  type After,
  BackendError,
  type Chain,
  type Encode,
  type Head,
  type HeaderEntry,
  type NewRecord,
  type RecordAt,
  type RecordBackend,
  type Removal,
  type RemoveOptions,
  type RunEntry,
  runEntryOf,
  type StoredRecord,
} from "../checkpoint/records/backend.js";
export { parseHeader, type RecordHeader } from "../checkpoint/records/header.js";
export {
  RecordStore,
  type RecordStoreOptions,
  type RecordStoreSettings,
} from "../checkpoint/records/record-store.js";

export type { Compression } from "../codecs/compression.js";
export type { CodecRecord } from "../codecs/pipeline.js";

export { type Lease, type LeaseKeeper, Leases } from "./leases.js";
