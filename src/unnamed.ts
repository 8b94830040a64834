/**
 * A type that users meet but do not import: where one of theirs contains it, TypeScript writes its fields into their
 * declaration files. An interface would need a name there, and so an export.
 */
export type Unnamed<T> = T;
