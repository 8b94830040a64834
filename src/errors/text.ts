/** How many characters of a value an error message shows. */
const SHOWN = 40;

/** A value as an error message shows it: cut if it is long, and without an object's contents. */
export function show(value: unknown): string {
  if (typeof value === "string") {
    return value.length > SHOWN
      ? `${JSON.stringify(value.slice(0, SHOWN))}… (a string)`
      : JSON.stringify(value);
  }
  if (typeof value === "function") return `the function ${value.name || "(anonymous)"}`;
  if (typeof value === "object" && value !== null) {
    if (Array.isArray(value)) return "an array";
    const prototype: object | null = Object.getPrototypeOf(value);
    if (prototype === null) return "a null-prototype object";
    const name = classOf(prototype);
    if (name === "Object") return "an object";
    return typeof name === "string" && name !== "" ? `a ${name}` : "an object of an unnamed class";
  }
  const text = typeof value === "bigint" ? `${value}n` : String(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}… (a ${typeof value})` : text;
}

function classOf(prototype: object): unknown {
  try {
    return prototype.constructor?.name;
  } catch {
    return undefined;
  }
}

/** Any value as text: by `String` or, if that throws, as {@link show} does. Anything can be thrown. */
export function asText(value: unknown): string {
  try {
    return String(value);
  } catch {
    return show(value);
  }
}

/** A message with what to do about it, if that is known. */
export function withHint(message: string, hint: string | undefined): string {
  return hint ? `${message} (${hint})` : message;
}

/** The code of a system's or a server's error, such as `ENOENT`; `""` if there is none. */
export function systemCode(error: unknown): string {
  const code: unknown = error instanceof Error ? Reflect.get(error, "code") : undefined;
  return typeof code === "string" ? code : "";
}

/** Whether an import failed because the package is not installed. */
export function isMissingPackage(error: unknown): boolean {
  return ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"].includes(systemCode(error));
}

/** The message of anything thrown. An AggregateError without a message gets those of its errors. */
export function messageOf(error: unknown): string {
  try {
    if (error instanceof AggregateError && error.message === "") {
      return error.errors.map(messageOf).join("; ");
    }
    if (typeof error !== "object" || error === null) return asText(error);
    // PGlite throws objects that are not Errors and have only a name.
    for (const field of ["message", "name"]) {
      const text: unknown = Reflect.get(error, field);
      if (typeof text === "string" && text !== "") return text;
    }
    return asText(error);
  } catch {
    return show(error);
  }
}
