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

/** The part of a record that is never encrypted, as far as codecs are concerned. */
interface Header {
  readonly codec?: CodecRecord;
}

/** A text as it is stored, and the header that says how. */
export interface Sealed<H extends Header> {
  readonly header: H;
  readonly content: string;
}

const DEFAULT_MAX_BYTES = 100 * 1024 * 1024;

/**
 * Compresses and encrypts text, and back. The text is a whole State or a patch; what becomes bytes is stored as a JSON
 * string of base64.
 */
export class Pipeline {
  /** Whether it neither compresses nor encrypts. */
  readonly isClear: boolean;
  readonly encrypts: boolean;
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
    this.encrypts = encrypt !== undefined;
    this.isClear = given === undefined && encrypt === undefined;
    this.#allowPlaintext = options.allowPlaintext ?? false;
    this.#maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
  }

  /**
   * What to store instead of a text, and its header with the codecs that were applied; if it was encrypted, that header
   * is authenticated with it.
   *
   * @throws SerializationError if the text is over `maxBytes`, or the key could not be fetched.
   */
  async seal<H extends Header>(header: H, text: string): Promise<Sealed<H>> {
    const plain = Buffer.from(text);
    const compressed = await this.#compress(plain);
    const bytes = compressed?.bytes ?? plain;
    const codec = { ...header.codec, ...compressed?.record };
    if (this.#keys !== undefined) return encrypted(this.#keys, { ...header, codec }, bytes);
    if (compressed === undefined) return { header, content: text };
    return { header: { ...header, codec }, content: toBase64(bytes) };
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
    const gain = this.encrypts ? plain.length : (plain.length * 3) / 4;
    if (bytes.length >= gain) return undefined;
    return { record: { compress: options.algorithm, bytes: plain.length }, bytes };
  }

  /**
   * Restores the text from what `seal` returned; synchronously if it is stored as it was.
   *
   * @param header - the header as it is stored.
   * @throws ConfigError if the key is missing, or is not the one it was encrypted with.
   * @throws CheckpointCorruptionError if a byte was changed.
   * @throws SerializationError if it is not encrypted but must be, it would be larger than `maxBytes`, or the key could
   *   not be fetched.
   */
  open(
    content: string,
    codec: CodecRecord | undefined,
    header: string,
    where: string,
  ): string | Promise<string> {
    const { encrypt, compress } = codec ?? {};
    if (encrypt === undefined && this.encrypts && !this.#allowPlaintext) {
      throw new SerializationError(
        where,
        "is not encrypted, and codec.encrypt is on: set codec.allowPlaintext to read it while you migrate",
      );
    }
    if (codec === undefined || (encrypt === undefined && compress === undefined)) return content;
    return this.#open(Buffer.from(content.slice(1, -1), "base64"), codec, header, where);
  }

  async #open(
    bytes: Uint8Array,
    codec: CodecRecord,
    header: string,
    where: string,
  ): Promise<string> {
    const { encrypt, compress, bytes: size = 0 } = codec;
    const opened = encrypt === undefined ? bytes : await this.#decrypt(bytes, codec, header, where);
    const plain =
      compress === undefined
        ? opened
        : await decompress(compress, opened, size, this.#maxBytes, where);
    return Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength).toString();
  }

  async #decrypt(
    bytes: Uint8Array,
    { key: id = "", check, nonce = "" }: CodecRecord,
    header: string,
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
    const opened = decrypt(key, Buffer.from(nonce, "base64"), Buffer.from(header), bytes);
    if (opened !== undefined) return opened;
    throw new CheckpointCorruptionError(
      `${where} was tampered with, or moved from another run or place: its authentication tag does not match`,
      { expected: `a tag made with the key ${show(id)}`, actual: "another tag" },
    );
  }
}

async function encrypted<H extends Header>(
  keys: KeyRing,
  header: H,
  bytes: Uint8Array,
): Promise<Sealed<H>> {
  const key = await keys.key(keys.current, "the next checkpoint");
  const nonce = randomBytes(NONCE_BYTES);
  const codec: CodecRecord = {
    ...header.codec,
    encrypt: "aes-256-gcm",
    key: keys.current,
    check: keyCheck(key),
    nonce: nonce.toString("base64"),
  };
  const sealed = { ...header, codec };
  const associated = Buffer.from(JSON.stringify(sealed));
  return { header: sealed, content: toBase64(encrypt(key, nonce, associated, bytes)) };
}

function toBase64(bytes: Uint8Array): string {
  return `"${Buffer.from(bytes).toString("base64")}"`;
}
