import type { Command } from "../command.js";
import { usage } from "../exit.js";
import { plain } from "../output/text.js";

const shells = ["bash", "zsh", "fish"] as const;

/** `waymark completion`. */
export const command: Command = {
  name: "completion",
  summary: "Print a completion script for a shell: commands, options and runs",
  arguments: [{ name: "shell", text: "bash, zsh or fish", optional: true, completes: "shell" }],
  options: [{ flags: "--runs", text: "print the ids of the runs instead, for the script" }],
  examples: [
    "waymark completion bash >> ~/.bashrc",
    "waymark completion zsh > ~/.zsh/completions/_waymark",
    "waymark completion fish > ~/.config/fish/completions/waymark.fish",
  ],
  run: async (context, values, all) => {
    const { print } = context;
    if (values.flag("runs")) {
      // Pressing Tab must not execute a config just because it is in the current folder.
      context.withoutCode();
      const runs = await (await context.store()).store.list();
      print.result(runs, () =>
        runs.filter((id) => !/^-|\s/.test(id) && plain(id) === id).join("\n"),
      );
      return undefined;
    }
    const shell = shells.find((one) => one === values.argument(0));
    if (shell === undefined) {
      throw usage(`the shell must be bash, zsh or fish; got "${values.argument(0)}"`);
    }
    const script = await scripts[shell](await all());
    print.result({ shell, script }, () => script);
    return undefined;
  },
};

type Script = (commands: readonly Command[]) => Promise<string>;

const scripts: Readonly<Record<(typeof shells)[number], Script>> = {
  bash: async (commands) => (await import("../completion/bash.js")).bash(commands),
  zsh: async (commands) => (await import("../completion/zsh.js")).zsh(commands),
  fish: async (commands) => (await import("../completion/fish.js")).fish(commands),
};
