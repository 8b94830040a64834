import type { Command, Option } from "../command.js";
import { longName, optionsOf, RUNS, takesValue } from "./words.js";

/** A completion script for zsh. */
export function zsh(commands: readonly Command[]): string {
  const described = commands.map(({ name, summary }) => `    '${name}:${zshText(summary)}'`);
  const cases = commands.map((command) => {
    const [argument] = command.arguments ?? [];
    const places: Readonly<Record<string, string>> = {
      run: "'*:run:_waymark_runs'",
      shell: "'1:shell:(bash zsh fish)'",
    };
    const place = places[argument?.completes ?? ""] ?? "'*:file:_files'";
    const options = optionsOf(command).map((option) => `'${spec(option)}'`);
    return `      ${command.name}) _arguments ${[...options, place].join(" ")} ;;`;
  });
  return `#compdef waymark
# waymark completion zsh > ~/.zsh/completions/_waymark
_waymark_runs() {
  local -a runs
  runs=(\${(f)"$(${RUNS})"})
  compadd -a runs
}
_waymark() {
  local -a commands
  commands=(
${described.join("\n")}
  )
  local context state line
  _arguments -C '1: :->command' '*:: :->rest'
  case $state in
    command) _describe command commands ;;
    rest)
      case $line[1] in
${cases.join("\n")}
      esac ;;
  esac
}
if [ "$funcstack[1]" = "_waymark" ]; then _waymark "$@"; else compdef _waymark waymark; fi
`;
}

function spec(option: Option): string {
  const many = option.many === true ? "*" : "";
  const value = takesValue(option) ? ":value:_files" : "";
  return `${many}${longName(option)}[${zshText(option.text)}]${value}`;
}

/** Text for a single-quoted zsh spec, in which brackets and colons are syntax. */
function zshText(text: string): string {
  return text.replace(/'/g, "").replace(/[[\]:]/g, "\\$&");
}
