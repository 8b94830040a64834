/** A stream to write to: `process.stdout` is one. */
export interface Output {
  /** Whether it is a terminal. */
  readonly isTTY?: boolean | undefined;
  /** How wide the terminal is. */
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

/** Where answers and piped input come from: `process.stdin` is one. */
type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean | undefined };

/** All that the command has to do with the world around it, so that a test can put another in its place. */
export interface Io {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder that relative paths start from. */
  readonly cwd: string;
  /** Calls back at each Ctrl-C, and at a polite kill; returns how to stop that. */
  onInterrupt(handler: () => void): () => void;
  /** Ends the process at once. */
  exit(code: number): void;
}
