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

/** The command's whole environment, so that a test can replace it. */
export interface Io {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder that relative paths start from. */
  readonly cwd: string;
  /** Calls the handler on each SIGINT and SIGTERM; returns a function that stops it. */
  onInterrupt(handler: () => void): () => void;
  /** Ends the process immediately. */
  exit(code: number): void;
}
