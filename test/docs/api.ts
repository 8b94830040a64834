import { join } from "node:path";
import ts from "typescript";
import manifest from "../../package.json" with { type: "json" };
import { root } from "./pages.js";

/** A function, method or constructor that a user can call. */
export interface Callable {
  /** Such as `StateGraph#resume`. */
  readonly name: string;
  /** The errors of waymark that it can throw, as far as its source tells. */
  readonly throws: readonly string[];
  /** What it says that it throws; for a method that an interface has too, what that says as well. */
  readonly says: string;
}

/** What a function throws, and the functions it calls. */
interface Reach {
  readonly throws: Set<string>;
  readonly calls: Set<ts.Node>;
}

/** The source files of the entry points. */
export const entryFiles = Object.values(manifest.exports).flatMap((target) =>
  typeof target === "string"
    ? []
    : join(root, target.default.replace("./dist/", "src/").replace(/\.js$/, ".ts")),
);

/** Every public callable of every entry point. */
export function callables(program: ts.Program): Callable[] {
  const checker = program.getTypeChecker();
  const reached = reachOf(program, checker);
  return exportsOf(program, checker).flatMap((symbol) =>
    (symbol.declarations ?? []).flatMap((declaration) =>
      codeOf(declaration).map((code): Callable => {
        const member = code === declaration ? "" : `#${code.name?.getText() ?? "constructor"}`;
        const throws = [...(reached.get(code)?.throws ?? [])].sort();
        return { name: `${symbol.name}${member}`, throws, says: saidBy(code, checker) };
      }),
    ),
  );
}

/** Every event, with the names of its data: `error?` for what may be missing. */
export function events(program: ts.Program): Map<string, string[]> {
  const checker = program.getTypeChecker();
  const map = exportsOf(program, checker).find(({ name }) => name === "EventMap");
  const all = (map === undefined ? [] : checker.getDeclaredTypeOfSymbol(map).getProperties())
    // A guide page adds events of its own by `declare module`.
    .filter(({ declarations = [] }) =>
      declarations.some((one) => one.getSourceFile().fileName.includes("/src/")),
    );
  const nameIn = ({ name, flags }: ts.Symbol): string =>
    (flags & ts.SymbolFlags.Optional) === 0 ? name : `${name}?`;
  return new Map(
    all.map((event) => {
      const fields = checker.getTypeOfSymbol(event).getProperties().map(nameIn);
      return [event.name, fields.sort()];
    }),
  );
}

function exportsOf(program: ts.Program, checker: ts.TypeChecker): ts.Symbol[] {
  const symbols = entryFiles.flatMap((path) => {
    const file = program.getSourceFile(path);
    const module = file && checker.getSymbolAtLocation(file);
    return module === undefined ? [] : checker.getExportsOfModule(module);
  });
  const isAlias = (symbol: ts.Symbol): boolean => (symbol.flags & ts.SymbolFlags.Alias) !== 0;
  return [...new Set(symbols.map((one) => (isAlias(one) ? checker.getAliasedSymbol(one) : one)))];
}

/** The function itself, or the public methods and the constructor of a class. */
function codeOf(declaration: ts.Declaration): ts.FunctionLikeDeclaration[] {
  if (isCode(declaration)) return [declaration];
  if (!ts.isClassDeclaration(declaration)) return [];
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  const members: readonly ts.Node[] = declaration.members;
  return members.filter(isCode).filter((member) => {
    const isInternal = ts.getJSDocTags(member).some(({ tagName }) => tagName.text === "internal");
    const isNamed = member.name === undefined || ts.isIdentifier(member.name);
    const isShown = (ts.getCombinedModifierFlags(member) & hidden) === 0;
    return isNamed && isShown && !isInternal && !ts.isAccessor(member);
  });
}

function isCode(node: ts.Node): node is ts.FunctionLikeDeclaration {
  return ts.isFunctionLike(node) && "body" in node && node.body !== undefined;
}

/** What a comment says after its `@throws`, and that of the interface's method which it implements. */
function saidBy(code: ts.FunctionLikeDeclaration, checker: ts.TypeChecker): string {
  const { parent } = code;
  const clauses = ts.isClassDeclaration(parent) ? (parent.heritageClauses ?? []) : [];
  const name = nameOf(code);
  const theirs = clauses
    .flatMap(({ types }) => types)
    .flatMap((type) => checker.getTypeAtLocation(type).getProperty(name)?.declarations ?? []);
  const overloads: readonly ts.Node[] = ts.isClassDeclaration(parent)
    ? parent.members.filter((member) => member.kind === code.kind && nameOf(member) === name)
    : ((code.name && checker.getSymbolAtLocation(code.name)?.declarations) ?? [code]);
  return [...overloads, ...theirs]
    .flatMap((node) => ts.getJSDocTags(node))
    .filter(({ tagName }) => tagName.text === "throws")
    .map((tag) => tag.getText())
    .join("\n");
}

function nameOf({ name }: ts.ClassElement | ts.FunctionLikeDeclaration): string {
  return name?.getText() ?? "";
}

/** Who calls whom, and what comes through: what a call in a `try` throws does not. */
function reachOf(program: ts.Program, checker: ts.TypeChecker): Map<ts.Node, Reach> {
  const reached = new Map<ts.Node, Reach>();
  const look = (node: ts.Node, within: Reach | undefined): void => {
    if (isCode(node)) {
      const own = { throws: new Set<string>(), calls: new Set<ts.Node>() };
      reached.set(node, own);
      ts.forEachChild(node, (child) => look(child, own));
      return;
    }
    const isCaught = ts.isTryStatement(node) && node.catchClause !== undefined;
    if (within !== undefined && ts.isThrowStatement(node)) {
      const { name } = checker.getTypeAtLocation(node.expression).symbol ?? {};
      if (name !== undefined && isOwnError(name)) within.throws.add(name);
    }
    if (within !== undefined && (ts.isCallExpression(node) || ts.isNewExpression(node))) {
      const called = checker.getResolvedSignature(node)?.declaration;
      if (called !== undefined) within.calls.add(called);
    }
    ts.forEachChild(node, (child) =>
      look(child, isCaught && child === node.tryBlock ? undefined : within),
    );
  };
  for (const file of program.getSourceFiles()) {
    if (!file.isDeclarationFile && file.fileName.includes("/src/")) look(file, undefined);
  }
  for (let isMore = true; isMore; ) {
    isMore = false;
    for (const { throws, calls } of reached.values()) {
      for (const thrown of [...calls].flatMap((call) => [...(reached.get(call)?.throws ?? [])])) {
        isMore ||= !throws.has(thrown);
        throws.add(thrown);
      }
    }
  }
  return reached;
}

/** Not those of JavaScript: they tell of a mistake in a store or in waymark, not in the call. */
function isOwnError(name: string): boolean {
  return name.endsWith("Error") && name !== "WaymarkError" && !(name in globalThis);
}
