import { promisify } from "node:util";
import {
  type BrotliOptions,
  brotliCompress,
  brotliCompressSync,
  brotliDecompress,
  brotliDecompressSync,
  constants,
  gunzip,
  gunzipSync,
  gzip,
  gzipSync,
  type ZlibOptions,
} from "node:zlib";
import { CheckpointCorruptionError, ConfigError, SerializationError, show } from "../errors.js";
import { checkOptions, integer, oneOf } from "../options.js";

/** How a checkpoint is compressed. */
export type Compression = "gzip" | "brotli";

/** Options of `codec.compress`. */
export interface CompressOptions {
  /** `gzip` or `brotli`. */
  readonly algorithm: Compression;
  /**
   * The compression level: gzip 1 to 9, brotli 0 to 11; 1 by default, which is fast, and larger levels gain
   * little.
   */
  readonly level?: number;
  /** States below this size in bytes are not compressed; 1024 by default. */
  readonly threshold?: number;
}

/** From how many bytes on another thread is worth it. */
const OFF_THREAD = 16 * 1024;

const algorithms = {
  gzip: {
    compress: promisify<Uint8Array, ZlibOptions, Buffer>(gzip),
    compressSync: gzipSync,
    decompress: promisify<Uint8Array, ZlibOptions, Buffer>(gunzip),
    decompressSync: gunzipSync,
    levels: [1, 9],
    settings: (level: number) => ({ level }),
  },
  brotli: {
    compress: promisify<Uint8Array, BrotliOptions, Buffer>(brotliCompress),
    compressSync: brotliCompressSync,
    decompress: promisify<Uint8Array, BrotliOptions, Buffer>(brotliDecompress),
    decompressSync: brotliDecompressSync,
    levels: [0, 11],
    settings: (level: number, bytes: number) => ({
      params: {
        [constants.BROTLI_PARAM_QUALITY]: level,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes,
      },
    }),
  },
} as const;

const isAlgorithm = oneOf(...Object.keys(algorithms));

/** Throws if the value is not valid for `codec.compress`. */
export function checkCompress(name: string, value: unknown): void {
  if (typeof value === "string") {
    isAlgorithm(name, value);
    return;
  }
  checkOptions(name, value, {
    algorithm: isAlgorithm,
    level: integer(0),
    threshold: integer(0),
  });
  const { algorithm, level } = value as CompressOptions;
  isAlgorithm(`${name}.algorithm`, algorithm);
  if (level === undefined) return;
  const [min, max] = algorithms[algorithm].levels;
  if (level < min || level > max) {
    throw new ConfigError(
      `${name}.level`,
      `must be ${min} to ${max} for ${algorithm}; got ${show(level)}`,
    );
  }
}

/** Compresses bytes; on another thread if they are large. */
export async function compress(
  bytes: Uint8Array,
  { algorithm, level = 1 }: CompressOptions,
): Promise<Uint8Array> {
  const { compress, compressSync, settings } = algorithms[algorithm];
  const options = settings(level, bytes.length);
  return bytes.length < OFF_THREAD ? compressSync(bytes, options) : compress(bytes, options);
}

/**
 * Decompresses. Never produces more than `size` bytes, whatever the input claims.
 *
 * @throws SerializationError if `size` is over `maxBytes`.
 * @throws CheckpointCorruptionError if the result does not have `size` bytes, or the input is not compressed
 *   data.
 */
export async function decompress(
  algorithm: Compression,
  bytes: Uint8Array,
  size: number,
  maxBytes: number,
  where: string,
): Promise<Uint8Array> {
  if (size > maxBytes) {
    throw new SerializationError(
      where,
      `is ${size} bytes once decompressed, more than codec.maxBytes (${maxBytes}) allows`,
    );
  }
  const { decompress, decompressSync } = algorithms[algorithm];
  const options = {
    maxOutputLength: Math.max(size, 1),
    chunkSize: Math.min(Math.max(size, 64), 1024 * 1024),
  };
  let found: string;
  try {
    const whole =
      size < OFF_THREAD ? decompressSync(bytes, options) : await decompress(bytes, options);
    if (whole.length === size) return whole;
    found = `${whole.length} bytes`;
  } catch (error) {
    found = isTooLarge(error) ? "more" : String(error);
  }
  throw new CheckpointCorruptionError(
    `${where} is corrupt: its ${algorithm} data is not what was written`,
    { expected: `${size} bytes`, actual: found },
  );
}

function isTooLarge(error: unknown): boolean {
  return error instanceof RangeError && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
}
