import { SerializationError } from "../errors.js";
import { integer } from "../options.js";
import { decode } from "./decode.js";
import { encode } from "./encode.js";
import {
  type FieldsJSON,
  fields,
  inBody,
  type Listed,
  readFields,
  type StateRecord,
  writeFields,
} from "./fields.js";
import { PLAIN } from "./json-traits.js";
import { fieldsOf, refuse, scalar, type UserText } from "./kinds.js";
import { isPlainObject, looksTagged, symbolOf } from "./shape.js";

/** The format that this version writes. A checkpoint in a newer format is rejected. */
const FORMAT = 1;

const formatKind = scalar<number>("fixed", integer(1));

/** A complete State as JSON, with nothing that `JSON.stringify` would change. */
export interface StateJSON extends FieldsJSON {
  /** The version of this format. */
  readonly waymark: number;
  /** The data, with tags where JSON has no type for a value. */
  readonly data: unknown;
}

/** The fields of a State that can be large, or that rarely change from one checkpoint to the next. */
export type BodyJSON = Partial<StateJSON>;

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
  return withFormat(record, fields, data) as StateJSON;
}

/** Whether JSON text holds the data exactly, without tags. */
export function isPlainData({ data, traits }: StateRecord): boolean {
  return traits === PLAIN && !looksTagged(Object.keys(data)) && symbolOf(data) === undefined;
}

/** The part of it that is not in the header of a stored record; the data must be JSON already. */
export function encodeBody(record: StateRecord, data: unknown): BodyJSON {
  return withFormat(record, inBody, data) as BodyJSON;
}

function withFormat(record: StateRecord, which: typeof fields, data: unknown): object {
  const json: Record<string, unknown> = { waymark: FORMAT };
  writeFields(record, which, json);
  json.data = data;
  return json;
}

/**
 * Restores a State's record from JSON, checking every field. It mutates the tree.
 *
 * @param header - has the fields that are not in the body of a stored record.
 * @throws SerializationError that names what is missing or wrong.
 */
export function decodeState(tree: unknown, header?: Listed<"header">): StateRecord {
  const given = fieldsOf(tree, "state");
  const format = formatKind.read(given.waymark, "state", "waymark");
  if (format > FORMAT) {
    throw new SerializationError(
      "state.waymark",
      `is ${format}: a newer waymark wrote it, this one reads up to ${FORMAT}`,
    );
  }
  const { value, traits } = decode(given.data, "data");
  if (!isPlainObject(value)) {
    return refuse(value, "state.data", "an object");
  }
  const { identity, progress, saved } = readFields(given, header);
  return { data: value, traits, identity, progress, saved };
}
