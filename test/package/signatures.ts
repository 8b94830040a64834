import { dirname } from "node:path";
import ts from "typescript";

/**
 * The types that the public declarations of a package name and that cannot be imported: neither from an entry point that
 * exports the declaration nor from the first one, which is the core.
 *
 * @param entries - the declaration file of each entry point, by the name it is imported by; the core first.
 */
export function unimportable(entries: ReadonlyMap<string, string>): string[] {
  const program = ts.createProgram([...entries.values()], {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    strict: true,
    noEmit: true,
    types: [],
  });
  const checker = program.getTypeChecker();
  const [core = ""] = entries.values();

  const resolved = (symbol: ts.Symbol): ts.Symbol =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const exportsOf = (file: ts.SourceFile | undefined): Set<ts.Symbol> => {
    const module = file && checker.getSymbolAtLocation(file);
    return new Set(module && checker.getExportsOfModule(module).map(resolved));
  };
  const isOurs = (symbol: ts.Symbol): boolean =>
    symbol.declarations?.some((one) => one.getSourceFile().fileName.startsWith(dirname(core))) ===
    true;

  /** The package's own types that stand in a piece of source. */
  function* namesIn(node: ts.Node): Generator<ts.Symbol> {
    const name = nameIn(node);
    const found = name && checker.getSymbolAtLocation(name);
    const type = found && resolved(found);
    if (type !== undefined && isOurs(type) && isNamed(type)) yield type;
    for (const child of node.getChildren()) yield* namesIn(child);
  }

  /** The names of the package's own types that an editor shows for a type. */
  function* shownIn(type: ts.Type): Generator<ts.Symbol> {
    const name = type.aliasSymbol ?? type.symbol;
    if (name !== undefined && isOurs(name) && isNamed(name) && !isComputed(name)) yield name;
    else if (type.isUnionOrIntersection()) for (const part of type.types) yield* shownIn(part);
    const isReference =
      (type.flags & ts.TypeFlags.Object) !== 0 &&
      ((type as ts.ObjectType).objectFlags & ts.ObjectFlags.Reference) !== 0;
    const given = isReference ? checker.getTypeArguments(type as ts.TypeReference) : [];
    for (const one of [...given, ...(type.aliasTypeArguments ?? [])]) yield* shownIn(one);
  }

  /**
   * The package's own types that a declaration names. What is computed counts as what it comes to: a generic alias, and
   * the members that an interface has from a base which can't be imported.
   */
  function namedBy(symbol: ts.Symbol, canImport: (type: ts.Symbol) => boolean): Set<ts.Symbol> {
    const named = new Set<ts.Symbol>();
    const add = (type: ts.Type): void => {
      for (const name of shownIn(type)) named.add(name);
    };
    function visit(node: ts.Node, computes: boolean): void {
      if (isHidden(node)) return;
      if (ts.isExpressionWithTypeArguments(node) && ts.isInterfaceDeclaration(node.parent.parent)) {
        const base = checker.getTypeFromTypeNode(node);
        if (![...namesIn(node)].every(canImport)) {
          for (const member of base.getProperties()) add(checker.getTypeOfSymbol(member));
          return;
        }
      }
      const name = nameIn(node);
      const found = name && checker.getSymbolAtLocation(name);
      const type = found && resolved(found);
      if (type !== undefined && isOurs(type) && isNamed(type)) {
        // What is private to its file and stands in a conditional type is a step of a computation, no type of a value.
        const isStep = computes && !exportsOf(type.declarations?.[0]?.getSourceFile()).has(type);
        if (!isComputed(type) || canImport(type)) {
          if (!isStep) named.add(type);
        } else if (!computes && ts.isTypeReferenceNode(node)) {
          add(checker.getTypeFromTypeNode(node));
        }
      }
      ts.forEachChild(node, (child) => visit(child, computes || ts.isConditionalTypeNode(node)));
    }
    for (const declaration of symbol.declarations ?? []) visit(declaration, false);
    return named;
  }

  const shared = exportsOf(program.getSourceFile(core));
  const missing = new Map<ts.Symbol, string[]>();
  for (const [entry, path] of entries) {
    const own = exportsOf(program.getSourceFile(path));
    for (const symbol of own) {
      if (!isOurs(symbol)) continue;
      const canImport = (type: ts.Symbol): boolean => own.has(type) || shared.has(type);
      const lost = [...namedBy(symbol, canImport)]
        .filter((type) => !canImport(type))
        .map((type) => `${entry}: ${symbol.name} names ${type.name}`);
      const before = missing.get(symbol);
      if (before === undefined || lost.length < before.length) missing.set(symbol, lost);
    }
  }
  return [...missing.values()].flat();
}

/** Whether a symbol is a type that has a name of its own. */
function isNamed({ flags, name }: ts.Symbol): boolean {
  const isType = (flags & (ts.SymbolFlags.Type & ~ts.SymbolFlags.TypeParameter)) !== 0;
  return isType && name !== ts.InternalSymbolName.Type && name !== ts.InternalSymbolName.Object;
}

/** Whether a type is one that is computed from arguments: a generic alias. */
function isComputed({ declarations }: ts.Symbol): boolean {
  return declarations?.some((one) => ts.isTypeAliasDeclaration(one) && one.typeParameters) === true;
}

/** Whether a member is for its class alone, or for classes that extend it. */
function isHidden(node: ts.Node): boolean {
  if (!ts.canHaveModifiers(node)) return false;
  const hides = [ts.SyntaxKind.PrivateKeyword, ts.SyntaxKind.ProtectedKeyword];
  return ts.getModifiers(node)?.some(({ kind }) => hides.includes(kind)) === true;
}

/** The name of a type, if that is what a node is. */
function nameIn(node: ts.Node): ts.Node | undefined {
  if (ts.isTypeReferenceNode(node)) return node.typeName;
  if (ts.isExpressionWithTypeArguments(node)) return node.expression;
  if (ts.isImportTypeNode(node)) return node.qualifier;
  return undefined;
}
