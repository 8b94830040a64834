import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
} from "node:crypto";
import { ConfigError, SerializationError, show } from "../errors.js";
import { checkOptions, text } from "../options.js";

/** A key of 32 bytes, as bytes or in base64. */
export type EncryptionKey = Uint8Array | string;

/** A key, or a function that fetches it, for example from a KMS. It is called when the key is first needed. */
export type KeySource = EncryptionKey | (() => EncryptionKey | Promise<EncryptionKey>);

/** Options of `codec.encrypt`: a ring of keys, so that keys can change and old checkpoints still load. */
export interface EncryptOptions {
  /** The id of the key that new checkpoints are encrypted with. */
  readonly current: string;
  /** The keys by their ids. Checkpoints contain the ids, never the keys. */
  readonly keys: Readonly<Record<string, KeySource>>;
}

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const TAG_BYTES = 16;

/** The length of a nonce. Random nonces are safe for 2^32 checkpoints per key. */
export const NONCE_BYTES = 12;

/** Throws if the value is not valid for `codec.encrypt`. No message shows any part of a key. */
export function checkEncrypt(name: string, value: unknown): void {
  // Not shown: a value passed here by mistake may be a key.
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) {
    throw new ConfigError(name, "must be an object with current, the id of a key, and keys");
  }
  checkOptions(name, value, { current: text, keys: checkKeys });
  const { current, keys } = value as EncryptOptions;
  text(`${name}.current`, current);
  checkKeys(`${name}.keys`, keys);
  if (!Object.hasOwn(keys, current)) {
    const ids = Object.keys(keys).map(show).join(", ") || "none";
    throw new ConfigError(`${name}.current`, `must be the id of one of ${name}.keys: ${ids}`);
  }
}

function checkKeys(name: string, value: unknown): void {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) {
    throw new ConfigError(name, "must be an object of keys by their ids");
  }
  for (const [id, source] of Object.entries(value)) {
    if (id === "") throw new ConfigError(name, "must have non-empty ids");
    if (typeof source !== "function") toKey(`${name}.${id}`, source);
  }
}

/** The only place that holds keys: in private fields, which no log shows. */
export class KeyRing {
  readonly current: string;
  readonly #sources = new Map<string, () => unknown>();
  readonly #keys = new Map<string, Promise<KeyObject>>();

  /** The options must have been checked. */
  constructor({ current, keys }: EncryptOptions) {
    this.current = current;
    for (const [id, source] of Object.entries(keys)) {
      if (typeof source === "function") this.#sources.set(id, source);
      else this.#keys.set(id, Promise.resolve(toKey(pathOf(id), source)));
    }
  }

  /**
   * The key with this id.
   *
   * @throws ConfigError if there is none, or it is not a valid key.
   * @throws SerializationError if it could not be fetched; the next call tries again.
   */
  async key(id: string, where: string): Promise<KeyObject> {
    const known = this.#keys.get(id);
    if (known !== undefined) return known;
    const source = this.#sources.get(id);
    if (source === undefined) {
      throw new ConfigError(
        "codec.encrypt.keys",
        `has no key ${show(id)}, which ${where} is encrypted with`,
      );
    }
    const fetched = fetchKey(id, source);
    this.#keys.set(id, fetched);
    fetched.catch(() => this.#keys.delete(id));
    return fetched;
  }
}

async function fetchKey(id: string, source: () => unknown): Promise<KeyObject> {
  let found: unknown;
  try {
    found = await source();
  } catch (cause) {
    throw new SerializationError(pathOf(id), "could not be fetched: see the cause", { cause });
  }
  return toKey(pathOf(id), found);
}

function pathOf(id: string): string {
  return `codec.encrypt.keys.${id}`;
}

function toKey(name: string, source: unknown): KeyObject {
  const bytes =
    source instanceof Uint8Array
      ? source
      : typeof source === "string" && /^[\w+/-]*={0,2}$/.test(source)
        ? Buffer.from(source, "base64")
        : undefined;
  const expected = `must be ${KEY_BYTES} bytes, or base64 of them`;
  if (bytes === undefined) {
    // Not shown: it may be a key that was passed the wrong way.
    const got = typeof source === "string" ? "a string that is not base64" : typeof source;
    throw new ConfigError(name, `${expected}; got ${got}`);
  }
  if (bytes.length !== KEY_BYTES) throw new ConfigError(name, `${expected}; got ${bytes.length}`);
  return createSecretKey(bytes);
}

/**
 * Eight bytes derived from a key that reveal nothing about it. They are stored beside the key's id, so that a
 * wrong key can be distinguished from a tampered checkpoint.
 */
export function keyCheck(key: KeyObject): string {
  return createHmac("sha256", key).update("waymark key check").digest("hex").slice(0, 16);
}

/** The encrypted bytes, followed by their tag. A nonce must never be used twice with one key. */
export function encrypt(
  key: KeyObject,
  nonce: Uint8Array,
  associated: Uint8Array,
  bytes: Uint8Array,
): Uint8Array {
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(associated);
  return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
}

/** The decrypted bytes; `undefined` if any byte of them, or of the associated data, was changed. */
export function decrypt(
  key: KeyObject,
  nonce: Uint8Array,
  associated: Uint8Array,
  bytes: Uint8Array,
): Uint8Array | undefined {
  if (bytes.length < TAG_BYTES || nonce.length !== NONCE_BYTES) return undefined;
  const end = bytes.length - TAG_BYTES;
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(associated);
  decipher.setAuthTag(bytes.subarray(end));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(0, end)), decipher.final()]);
  } catch {
    return undefined;
  }
}
