import { randomBytes } from "node:crypto";
import { CheckpointCorruptionError, ConfigError, SerializationError, show } from "../errors.js";
import { checkOptions, flag, integer } from "../options.js";
import {
  type Compression,
  type CompressOptions,
  checkCompress,
  compress,
  decompress,
} from "./compression.js";
import {
  checkEncrypt,
  decrypt,
  type EncryptOptions,
  encrypt,
  KeyRing,
  keyCheck,
  NONCE_BYTES,
} from "./encryption.js";
import { checkRedaction, type Redaction } from "./patterns.js";

/**
 * How a store transforms checkpoints before it writes them. Any configuration reads what any other wrote,
 * given the keys.
 */
export interface CodecOptions {
  /** Compresses checkpoints; off by default. A name alone selects an algorithm with its defaults. */
  readonly compress?: Compression | CompressOptions;
  /** Encrypts the content of checkpoints with AES-256-GCM; off by default. */
  readonly encrypt?: EncryptOptions;
  /** With `encrypt`: whether to read checkpoints that are not encrypted, during a migration; false by default. */
  readonly allowPlaintext?: boolean;
  /**
   * Values to keep out of the store, as for {@link redact}: paths, such as `data.apiKey` or `*.token`, and
   * expressions, such as `/sk-\w+/`, to search for in all your strings: data, metadata, errors, ledger,
   * pauses. They load as `[redacted]`. An error whose message is redacted loses its stack.
   */
  readonly redact?: Redaction;
  /** The largest state, as JSON, to compress or to decompress, in bytes; 100 MB by default. */
  readonly maxBytes?: number;
}

/** The codecs applied to one checkpoint. Part of the header, and needed to read the checkpoint back. */
export interface CodecRecord {
  /** How it was compressed. */
  readonly compress?: Compression;
  /** Its size before that, in bytes. */
  readonly bytes?: number;
  /** How it was encrypted. */
  readonly encrypt?: "aes-256-gcm";
  /** The id of the key. */
  readonly key?: string;
  /** Distinguishes this key from another with the same id. */
  readonly check?: string;
  /** The nonce, used only once, in base64. */
  readonly nonce?: string;
  /** Whether values were left out by `redact`. */
  readonly redacted?: true;
}

/** The result of `seal`. Without `bytes`, the text is stored as it is; without a record, no codec was applied. */
export interface Sealed {
  readonly record: CodecRecord | undefined;
  readonly bytes: Uint8Array | undefined;
}

const DEFAULT_MAX_BYTES = 100 * 1024 * 1024;

/** Compresses and encrypts text to bytes, and back. The text is a whole State or a patch. */
export class Pipeline {
  readonly #compression: CompressOptions | undefined;
  readonly #keys: KeyRing | undefined;
  readonly #allowPlaintext: boolean;
  readonly #maxBytes: number;

  /** @throws ConfigError if an option is invalid. */
  constructor(options: CodecOptions = {}) {
    // Not shown: it may be a key that was passed the wrong way.
    if (typeof options !== "object") throw new ConfigError("codec", "must be an object of options");
    checkOptions("codec", options, {
      compress: checkCompress,
      encrypt: checkEncrypt,
      allowPlaintext: flag,
      redact: checkRedaction,
      maxBytes: integer(1),
    });
    const { compress: given, encrypt } = options;
    this.#compression = typeof given === "string" ? { algorithm: given } : given;
    this.#keys = encrypt === undefined ? undefined : new KeyRing(encrypt);
    this.#allowPlaintext = options.allowPlaintext ?? false;
    this.#maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
  }

  /**
   * What to store instead of a text. `associate` returns, for a record, the data to authenticate with the
   * encrypted bytes; `open` needs the same data again.
   *
   * @throws SerializationError if the text is over `maxBytes`, or the key could not be fetched.
   */
  async seal(
    text: string,
    redacted: boolean,
    associate: (record: CodecRecord) => Uint8Array,
  ): Promise<Sealed> {
    const plain = Buffer.from(text);
    const { bytes, record: compressed } = (await this.#compress(plain)) ?? {};
    const record: CodecRecord = { ...(redacted && { redacted }), ...compressed };
    if (this.#keys !== undefined) {
      return this.#encrypt(this.#keys, bytes ?? plain, record, associate);
    }
    return { record: redacted || compressed !== undefined ? record : undefined, bytes };
  }

  async #compress(
    plain: Uint8Array,
  ): Promise<{ record: CodecRecord; bytes: Uint8Array } | undefined> {
    const options = this.#compression;
    if (options === undefined || plain.length < (options.threshold ?? 1024)) return undefined;
    if (plain.length > this.#maxBytes) {
      throw new SerializationError(
        "state",
        `is ${plain.length} bytes, more than codec.maxBytes (${this.#maxBytes}) allows: it could not be read back`,
      );
    }
    const bytes = await compress(plain, options);
    // Bytes become base64, which is a third longer; encrypted ones do in any case.
    const gain = this.#keys === undefined ? (plain.length * 3) / 4 : plain.length;
    if (bytes.length >= gain) return undefined;
    return { record: { compress: options.algorithm, bytes: plain.length }, bytes };
  }

  async #encrypt(
    keys: KeyRing,
    bytes: Uint8Array,
    before: CodecRecord,
    associate: (record: CodecRecord) => Uint8Array,
  ): Promise<Sealed> {
    const key = await keys.key(keys.current, "the next checkpoint");
    const nonce = randomBytes(NONCE_BYTES);
    const record: CodecRecord = {
      ...before,
      encrypt: "aes-256-gcm",
      key: keys.current,
      check: keyCheck(key),
      nonce: nonce.toString("base64"),
    };
    return { record, bytes: encrypt(key, nonce, associate(record), bytes) };
  }

  /**
   * Checks that a checkpoint with this record may be read.
   *
   * @throws SerializationError if it is not encrypted but must be.
   */
  admit(record: CodecRecord | undefined, where: string): void {
    if (this.#keys === undefined || this.#allowPlaintext || record?.encrypt !== undefined) return;
    throw new SerializationError(
      where,
      "is not encrypted, and codec.encrypt is on: set codec.allowPlaintext to read it while you migrate",
    );
  }

  /**
   * Restores the text from the bytes of `seal`.
   *
   * @throws ConfigError if the key is missing, or is not the one it was encrypted with.
   * @throws CheckpointCorruptionError if a byte was changed.
   * @throws SerializationError if it would be larger than `maxBytes`, or the key could not be fetched.
   */
  async open(
    bytes: Uint8Array,
    record: CodecRecord,
    associated: Uint8Array,
    where: string,
  ): Promise<string> {
    this.admit(record, where);
    const opened =
      record.encrypt === undefined ? bytes : await this.#decrypt(bytes, record, associated, where);
    const plain =
      record.compress === undefined
        ? opened
        : await decompress(record.compress, opened, record.bytes ?? 0, this.#maxBytes, where);
    return Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength).toString();
  }

  async #decrypt(
    bytes: Uint8Array,
    { key: id = "", check, nonce = "" }: CodecRecord,
    associated: Uint8Array,
    where: string,
  ): Promise<Uint8Array> {
    if (this.#keys === undefined) {
      throw new ConfigError(
        "codec.encrypt",
        `is not set, and ${where} is encrypted with the key ${show(id)}`,
      );
    }
    const key = await this.#keys.key(id, where);
    if (keyCheck(key) !== check) {
      throw new ConfigError(
        `codec.encrypt.keys.${id}`,
        `is not the key that ${where} was encrypted with`,
      );
    }
    const opened = decrypt(key, Buffer.from(nonce, "base64"), associated, bytes);
    if (opened !== undefined) return opened;
    throw new CheckpointCorruptionError(
      `${where} was tampered with, or moved from another run or place: its authentication tag does not match`,
      { expected: `a tag made with the key ${show(id)}`, actual: "another tag" },
    );
  }
}
