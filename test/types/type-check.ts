import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);

interface Checked {
  readonly problems: readonly string[];
  readonly instantiations: number;
  readonly seconds: number;
}

/** Type-checks a program that is in no file, with this project's own settings. */
export function typeCheck(text: string): Checked {
  const path = `${root}test/types/generated.ts`;
  const host = ts.createCompilerHost(options);
  const { fileExists, getSourceFile } = host;
  const source = ts.createSourceFile(path, text, {
    languageVersion: ts.ScriptTarget.ES2022,
    impliedNodeFormat: ts.ModuleKind.ESNext,
  });
  host.fileExists = (name) => name === path || fileExists(name);
  host.getSourceFile = (name, ...rest) => (name === path ? source : getSourceFile(name, ...rest));
  const program = ts.createProgram([path], options, host);
  const started = performance.now();
  const problems = [
    ...program.getSyntacticDiagnostics(source),
    ...program.getSemanticDiagnostics(source),
  ];
  return {
    problems: problems.map((one) => ts.flattenDiagnosticMessageText(one.messageText, "\n")),
    instantiations: program.getInstantiationCount(),
    seconds: (performance.now() - started) / 1000,
  };
}
