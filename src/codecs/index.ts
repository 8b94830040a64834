/**
 * Compression, encryption and redaction of checkpoints, and registered types.
 *
 * @packageDocumentation
 */

export { type Class, registerType, type TypeDefinition } from "../state/values/registered.js";
export type { Compression, CompressOptions } from "./compression.js";
export type { EncryptionKey, EncryptOptions, KeySource } from "./encryption.js";
export type { CodecOptions } from "./pipeline.js";
export { REDACTED, type Redaction, redact, redactEvents, redactor } from "./redact.js";
