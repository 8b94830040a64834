import { type AnyKind, inOneShape, type JSONValueOf, type ValueOf } from "./kinds.js";

/** Where a field of a record may be listed: in a record's plaintext header, in `history`, in `runs`. */
export type Where = "header" | "history" | "runs";

/** Where else than in the record of a State a field is listed. */
export interface Listing<T = never> extends Readonly<Partial<Record<Where, true>>> {
  /** Whether it is in the JSON of a State even if it is empty. */
  readonly isWritten?: true;
  /** Its name where it is listed, if it is another one. */
  readonly as?: keyof ListedAs;
  /** What of it is listed, if not all: then all of it is in the body of a stored record. */
  readonly brief?: { readonly kind: AnyKind; of(value: T): unknown };
}

/** A field and its kind. */
type Row = Listing<unknown> & { readonly kind: AnyKind };

/** Fields by name. */
export type Table = Readonly<Record<string, Row>>;

/** A field of a State's record. */
export function field<
  K extends AnyKind,
  const L extends Listing<ValueOf<K>> = Record<never, never>,
>(kind: K, listing?: L): L & { readonly kind: K } {
  return { kind, ...listing } as L & { readonly kind: K };
}

export const everywhere = { header: true, history: true, runs: true } as const;
export const inHistory = { header: true, history: true } as const;
export const inRuns = { header: true, runs: true } as const;

/** The parts of a record. */
type Part = "identity" | "progress" | "saved";

/** Any field, with its place in a record and its name where it is listed. */
export interface AnyField extends Omit<Listing<unknown>, "as"> {
  readonly part: Part;
  readonly key: string;
  readonly as: string;
  readonly kind: AnyKind;
  /** Whether the body of a stored record does without it. */
  readonly isOnlyInHeader: boolean;
}

/** The fields of a table, all with the same properties. */
export function fieldsIn(part: Part, table: Table): readonly AnyField[] {
  return Object.entries(table).map(([key, row]) => {
    const { as = key, header, history, runs, isWritten, brief } = row;
    const kind = inOneShape(row.kind);
    const isOnlyInHeader = header === true && brief === undefined;
    const listing = { as, brief, header, history, runs, isOnlyInHeader };
    return { part, key, kind, isWritten, ...listing } as AnyField;
  });
}

/** The values of fields. */
export type ValuesOf<F extends Table> = { readonly [K in keyof F]: ValueOf<F[K]["kind"]> };

/** Whether a field is absent from JSON if it is empty. */
type IsDefault<F extends Row> = F["kind"] extends { readonly empty: unknown } ? true : false;

type IsOptional<F extends Row> = F extends { readonly isWritten: true } ? false : IsDefault<F>;

/** The fields as JSON. */
export type JSONOf<F extends Table> = {
  readonly [K in keyof F as IsOptional<F[K]> extends true ? never : K]: JSONValueOf<F[K]["kind"]>;
} & {
  readonly [K in keyof F as IsOptional<F[K]> extends true ? K : never]?: JSONValueOf<F[K]["kind"]>;
};

/** A field as it is listed. */
type Brief<F extends Row> = F extends {
  readonly brief: { readonly kind: infer K extends AnyKind };
}
  ? ValueOf<K>
  : ValueOf<F["kind"]>;

/** What is listed under another name. */
interface ListedAs {
  /** The last node that completed; `""` before the first. */
  readonly node: string;
}

/** Whether a field may be missing where it is listed: a header leaves out what is empty. */
type IsMissing<F extends Row, W extends Where> =
  undefined extends Brief<F>
    ? true
    : W extends "header"
      ? F extends { readonly brief: unknown }
        ? false
        : IsDefault<F>
      : false;

/** A key that is listed under its own name. It is only filtered: under a new one it would lose its documentation. */
type KeyIn<F extends Table, K extends keyof F, W extends Where, M extends boolean> =
  F[K] extends Readonly<Record<W, true>>
    ? F[K] extends { readonly as: string }
      ? never
      : IsMissing<F[K], W> extends M
        ? K
        : never
    : never;

/** The fields that are listed somewhere. */
export type ListedOf<F extends Table, W extends Where> = {
  readonly [K in keyof F as KeyIn<F, K, W, false>]: Brief<F[K]>;
} & {
  readonly [K in keyof F as KeyIn<F, K, W, true>]?: Brief<F[K]> | undefined;
} & ListedAs;

/** The fields that are listed, all of each. */
export type ListedWholeOf<F extends Table> = {
  readonly [K in keyof F as F[K] extends { readonly header: true } ? K : never]: ValueOf<
    F[K]["kind"]
  >;
};
