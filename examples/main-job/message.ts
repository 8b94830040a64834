/** What a worker tells. */
export type Message =
  | { readonly type: "resumed"; readonly after: string; readonly step: number }
  | { readonly type: "started"; readonly node: string }
  | { readonly type: "saved"; readonly node: string; readonly sequence: number }
  | { readonly type: "ended"; readonly status: string; readonly parts: readonly string[] };
