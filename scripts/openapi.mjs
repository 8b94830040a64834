// Writes src/studio/openapi.json from the types in src/studio/api.ts; with --check says whether it is up to date.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("..", import.meta.url));
const source = join(root, "src/studio/api.ts");
const target = join(root, "src/studio/openapi.json");

/** The description of the API as an object. */
export function describe() {
  const config = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile).config;
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const program = ts.createProgram([source], options);
  const checker = program.getTypeChecker();
  const file = program.getSourceFile(source);
  const schemas = {};

  // What other parts say of their types is theirs to change.
  const docOf = (symbol) => {
    if (symbol?.declarations?.[0]?.getSourceFile() !== file) return "";
    const text = ts.displayPartsToString(symbol?.getDocumentationComment(checker) ?? []);
    return text
      .replace(/\{@link (\w+)\}/g, "$1")
      .replace(/\s+/g, " ")
      .trim();
  };
  const withDoc = (schema, doc) => (doc === "" ? schema : { description: doc, ...schema });

  /** The schema of a type; those with a name are kept beside the others and referred to. */
  function schemaOf(type) {
    const alias = type.aliasSymbol;
    const symbol = alias ?? type.symbol;
    const name = symbol?.getName() ?? "";
    const isOurs = symbol?.declarations?.[0]?.getSourceFile().fileName.includes("/src/");
    const isNamed = isOurs && /^[A-Z]\w+$/.test(name) && !type.typeArguments?.length;
    if (!isNamed || (alias === undefined && !type.isClassOrInterface())) return shapeOf(type);
    if (!(name in schemas)) {
      schemas[name] = {};
      schemas[name] = withDoc(shapeOf(type), docOf(symbol));
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  function shapeOf(type) {
    if (type.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown)) return {};
    if (type.flags & ts.TypeFlags.Null) return { type: "null" };
    if (type.isStringLiteral()) return { const: type.value };
    if (type.flags & ts.TypeFlags.BooleanLiteral)
      return { const: checker.typeToString(type) === "true" };
    if (type.flags & ts.TypeFlags.StringLike) return { type: "string" };
    if (type.flags & ts.TypeFlags.NumberLike) return { type: "number" };
    if (type.flags & ts.TypeFlags.BooleanLike) return { type: "boolean" };
    if (type.isUnion()) return unionOf(type.types);
    if (checker.isArrayType(type)) {
      return { type: "array", items: schemaOf(checker.getTypeArguments(type)[0]) };
    }
    return objectOf(type);
  }

  function unionOf(types) {
    const parts = types.filter((one) => !(one.flags & ts.TypeFlags.Undefined));
    const isFlag = (one) => (one.flags & ts.TypeFlags.BooleanLiteral) !== 0;
    const bool = parts.filter(isFlag);
    const others = parts.filter((one) => !isFlag(one));
    const texts = others.filter((one) => one.isStringLiteral());
    const rest = others.filter((one) => !one.isStringLiteral());
    const all = [
      ...(texts.length > 0 ? [{ type: "string", enum: texts.map(({ value }) => value) }] : []),
      ...rest.map(schemaOf),
      ...(bool.length === 2 ? [{ type: "boolean" }] : bool.map(shapeOf)),
    ];
    return all.length === 1 ? all[0] : { anyOf: all };
  }

  function objectOf(type) {
    const properties = {};
    const required = [];
    for (const property of checker.getPropertiesOfType(type)) {
      const found = checker.getTypeOfSymbol(property);
      const name = property.getName();
      properties[name] = withDoc(schemaOf(found), docOf(property));
      const maybe =
        found.isUnion() && found.types.some((one) => one.flags & ts.TypeFlags.Undefined);
      // What is undefined is not in JSON.
      if (!(property.flags & ts.SymbolFlags.Optional) && !maybe) required.push(name);
    }
    const index = checker.getIndexInfoOfType(type, ts.IndexKind.String);
    return {
      type: "object",
      ...(Object.keys(properties).length > 0 && { properties }),
      ...(required.length > 0 && { required }),
      ...(index && index.type.flags & ts.TypeFlags.Never
        ? { additionalProperties: false }
        : index && { additionalProperties: schemaOf(index.type) }),
    };
  }

  const exported = (name) => {
    const found = checker.getExportsOfModule(checker.getSymbolAtLocation(file));
    return checker.getDeclaredTypeOfSymbol(found.find((one) => one.getName() === name));
  };
  const partOf = (route, name) => checker.getTypeOfSymbol(route.getProperty(name));
  const error = { description: "See ApiError.", content: json(schemaOf(exported("ApiError"))) };
  const paths = {};
  for (const route of checker.getPropertiesOfType(exported("StudioApi"))) {
    const [method, address] = route.getName().split(" ");
    const path = address.replace(":id", "{id}");
    const type = checker.getTypeOfSymbol(route);
    const request = partOf(type, "request");
    const isRead = method === "GET";
    const answer = schemaOf(partOf(type, "answer"));
    const isStream = address === "/api/events";
    const good = {
      description: isStream ? "Server-Sent Events, each with an id." : "The answer.",
      content: isStream ? { "text/event-stream": { schema: answer } } : json(answer),
    };
    const answers = isRead
      ? { 200: good }
      : method === "DELETE"
        ? { 204: { description: "It is removed." } }
        : { 200: good, 202: { ...good, description: "The run is at work, or in the queue." } };
    const parameters = [
      ...(path.includes("{id}")
        ? [{ name: "id", in: "path", required: true, schema: { type: "string" } }]
        : []),
      ...(isRead ? queryOf(request) : []),
      ...(isStream
        ? [{ name: "Last-Event-ID", in: "header", required: false, schema: { type: "string" } }]
        : []),
    ];
    const hasBody = method === "POST" && !(request.flags & ts.TypeFlags.Unknown);
    paths[path] ??= {};
    paths[path][method.toLowerCase()] = {
      summary: docOf(route),
      ...(parameters.length > 0 && { parameters }),
      ...(hasBody && { requestBody: { content: json(schemaOf(request)) } }),
      responses: { ...answers, default: error },
    };
  }

  function queryOf(type) {
    return checker.getPropertiesOfType(type).map((property) => ({
      name: property.getName(),
      in: "query",
      required: !(property.flags & ts.SymbolFlags.Optional),
      description: docOf(property),
      schema: schemaOf(checker.getTypeOfSymbol(property)),
    }));
  }

  return {
    openapi: "3.1.0",
    info: { title: "waymark studio", version: "1" },
    security: [{ token: [] }],
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
  };
}

function json(schema) {
  return { "application/json": { schema } };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = `${JSON.stringify(describe(), null, 2)}\n`;
  if (!process.argv.includes("--check")) writeFileSync(target, text);
  else if (text !== readFileSync(target, "utf8")) {
    console.error("src/studio/openapi.json is not what src/studio/api.ts says: npm run openapi");
    process.exitCode = 1;
  }
}
