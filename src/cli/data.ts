import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { missing, usage } from "./exit.js";
import type { Io } from "./io.js";

/** The text of an option: literal, from a file (`@data.json`), or from stdin (`-`). */
async function readText(io: Io, given: string): Promise<string> {
  if (given === "-") return readAll(io.stdin);
  if (!given.startsWith("@")) return given;
  const file = resolve(io.cwd, given.slice(1));
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw missing(`${file} can't be read: ${(error as Error).message}`);
  }
}

/**
 * Parses an option's JSON object.
 *
 * @throws CommandError if it is not one.
 */
export async function readObject(io: Io, option: string, given: string): Promise<object> {
  const text = await readText(io, given);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const hint = 'as in \'{"topic":"cairns"}\', @file.json, or - for a pipe';
    throw usage(`${option} is not JSON: ${(error as Error).message}`, hint);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw usage(`${option} must be a JSON object; got ${JSON.stringify(value).slice(0, 40)}`);
}

/** Parses JSON; text that is not JSON is returned as it is. */
export async function readValue(io: Io, given: string): Promise<unknown> {
  const text = await readText(io, given);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * Parses `key=value` options.
 *
 * @throws CommandError if one has no key.
 */
export async function readChanges(
  io: Io,
  option: string,
  given: readonly string[],
): Promise<Readonly<Record<string, unknown>>> {
  const changes: [string, unknown][] = [];
  for (const text of given) {
    const at = text.indexOf("=");
    if (at < 1) throw usage(`${option} must be key=value; got "${text}"`);
    changes.push([text.slice(0, at), await readValue(io, text.slice(at + 1))]);
  }
  return Object.fromEntries(changes);
}
