/**
 * What stores do to checkpoints: one format with a hash, compressed and encrypted on demand.
 *
 * @packageDocumentation
 */

export { type Class, registerType, type TypeDefinition } from "../state/registered-types.js";
export type { Compression, CompressOptions } from "./compression.js";
export {
  type CodecOptions,
  type DecodedDocument,
  DocumentCodec,
  type DocumentHeader,
  type ExpectedCheckpoint,
} from "./document.js";
export type { EncryptionKey, EncryptOptions, KeySource } from "./encryption.js";
export type { CodecRecord } from "./pipeline.js";
export { REDACTED, type Redaction, redact, redactEvents, redactor } from "./redact.js";
