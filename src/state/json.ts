import { SerializationError } from "../errors.js";
import { decode } from "./decode.js";
import { encode } from "./encode.js";
import { PLAIN } from "./json-traits.js";
import { fieldsOf, positive, readField, refuse, type UserText, writeField } from "./kinds.js";
import {
  type FieldOfRecord,
  type FieldsJSON,
  fieldOf,
  fields,
  type HeaderKey,
  newProgress,
  type StateRecord,
  unsaved,
} from "./record.js";
import { isPlainObject, looksTagged, symbolOf } from "./shape.js";

/** The format that this version writes. A checkpoint in a newer format is rejected. */
const FORMAT = 1;

/** A complete State as JSON, with nothing that `JSON.stringify` would change. */
export interface StateJSON extends FieldsJSON {
  /** The version of this format. */
  readonly waymark: number;
  /** The data, with tags where JSON has no type for a value. */
  readonly data: unknown;
}

/** The fields of a State that can be large, or that rarely change from one checkpoint to the next. */
export type BodyJSON = Omit<StateJSON, HeaderKey>;

/** The fields that a stored record has only in its header. */
export const inHeader = fields.filter(
  ({ header, brief }) => header === true && brief === undefined,
);

const inBody = fields.filter((field) => !inHeader.includes(field));

const all = [...inHeader, ...inBody];

/** Which text of a State's JSON is the user's. */
export const stateText: UserText = {
  fields: Object.assign(
    { waymark: "fixed", data: { each: "own" } },
    ...fields.map(({ key, kind: { userText, isSpread } }) =>
      isSpread && typeof userText === "object" ? userText.fields : { [key]: userText },
    ),
  ) as Readonly<Record<string, UserText>>,
};

/** A State's record as JSON. */
export function encodeState(record: StateRecord): StateJSON {
  const data = isPlainData(record) ? record.data : encode(record.data, "data");
  return written(record, all, data) as unknown as StateJSON;
}

/** Whether JSON text holds the data exactly, without tags. */
export function isPlainData({ data, traits }: StateRecord): boolean {
  return traits === PLAIN && !looksTagged(Object.keys(data)) && symbolOf(data) === undefined;
}

/** The part of it that is not in the header of a stored record; the data must be JSON already. */
export function encodeBody(record: StateRecord, data: unknown): BodyJSON {
  return written(record, inBody, data) as unknown as BodyJSON;
}

function written(record: StateRecord, some: readonly FieldOfRecord[], data: unknown): object {
  const json: Record<string, unknown> = { waymark: FORMAT };
  for (const field of some) {
    const { key, kind, isWritten } = field;
    const value = fieldOf(record, field);
    if (kind.isSpread) Object.assign(json, kind.write?.(value));
    else if (isWritten) json[key] = value;
    else writeField(kind, value, json, key);
  }
  json.data = data;
  return json;
}

/**
 * Restores a State's record from JSON, checking every field. It mutates the tree.
 *
 * @throws SerializationError that names what is missing or wrong.
 */
export function decodeState(tree: unknown): StateRecord {
  const given = fieldsOf(tree, "state");
  const format = positive.read(given.waymark, "state", "waymark");
  if (format > FORMAT) {
    throw new SerializationError(
      "state.waymark",
      `is ${format}: a newer waymark wrote it, this one reads up to ${FORMAT}`,
    );
  }
  const { value, traits } = decode(given.data, "data");
  if (typeof value !== "object" || value === null || !isPlainObject(value)) {
    return refuse(value, "state.data", "an object");
  }
  const parts = { identity: {}, progress: { ...newProgress() }, saved: { ...unsaved } };
  for (const { part, key, kind, isWritten } of fields) {
    const json = kind.isSpread ? given : given[key];
    (parts[part] as Record<string, unknown>)[key] = isWritten
      ? kind.read(json, "state", key)
      : readField(kind, json, "state", key);
  }
  return { data: value, traits, ...parts } as StateRecord;
}
