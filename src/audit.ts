/** Who had to do with a checkpoint, where the graph's `audit` option says so. @inline */
export interface Audit {
  /** A person or a service. */
  readonly actor?: string;
  /** What for. */
  readonly purpose?: string;
}
