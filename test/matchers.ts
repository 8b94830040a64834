import { expect } from "vitest";

/** Matches a ConfigError for this option, whose message says this. */
export function configError(option: string, message: string | RegExp = ""): unknown {
  return expect.objectContaining({
    name: "ConfigError",
    code: "CONFIG",
    option,
    message: expect.stringMatching(message),
  });
}

/** Matches a SchemaError of what was checked, whose message says this. */
export function schemaError(name: string, message: string): unknown {
  return expect.objectContaining({
    name: "SchemaError",
    code: "SCHEMA",
    message: expect.stringContaining(`${name} does not fit its schema: ${message}`),
  });
}

/** Matches a SerializationError at this path, whose message says this. */
export function serializationError(path: string, message: string | RegExp = ""): unknown {
  return expect.objectContaining({
    name: "SerializationError",
    code: "SERIALIZATION",
    path,
    message: expect.stringMatching(message),
  });
}
