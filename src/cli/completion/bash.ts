import type { Command } from "../command.js";
import { longName, optionsOf, RUNS, takesValue } from "./words.js";

/** A completion script for bash. Run ids are data: `compgen -W` would expand them, and execute a `$(…)` in one. */
export function bash(commands: readonly Command[]): string {
  const names = commands.map(({ name }) => name).join(" ");
  const options = commands.map(
    (command) => `    ${command.name}) options="${optionsOf(command).map(longName).join(" ")}" ;;`,
  );
  const valued = [...new Set(commands.flatMap(optionsOf).filter(takesValue).map(longName))];
  const withRuns = commands
    .filter(({ arguments: args = [] }) => args.some(({ completes }) => completes === "run"))
    .map(({ name }) => name);
  return `# waymark completion bash >> ~/.bashrc
_waymark_runs() {
  local run quoted
  while IFS= read -r run; do
    printf -v quoted '%q' "$run"
    if [[ "$run" == "$1"* || "$quoted" == "$1"* ]]; then COMPREPLY+=("$quoted"); fi
  done < <(${RUNS})
}
_waymark() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command="" options="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case " ${names} " in *" \${COMP_WORDS[i]} "*) command="\${COMP_WORDS[i]}"; break ;; esac
  done
  if [[ -z "$command" ]]; then
    COMPREPLY=($(compgen -W "${names} --help --version" -- "$word"))
    return
  fi
  case "$before" in ${valued.join("|")})
    COMPREPLY=($(compgen -f -- "$word"))
    return ;;
  esac
  case "$command" in
${options.join("\n")}
  esac
  if [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
    return
  fi
  case "$command" in
    ${withRuns.join("|")}) COMPREPLY=(); _waymark_runs "$word" ;;
    completion) COMPREPLY=($(compgen -W "bash zsh fish" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}
complete -F _waymark waymark
`;
}
