import { describe, expectTypeOf, test } from "vitest";
import {
  chain,
  type Draft,
  dag,
  type Immutable,
  parallel,
  route,
  State,
  StateGraph,
  subgraph,
} from "waymark";

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** The shape of the AI SDK's messages. */
type JsonValue = null | string | number | boolean | JsonObject | JsonValue[];
type JsonObject = { [key: string]: JsonValue | undefined };
type ProviderOptions = Record<string, JsonObject>;
interface TextPart {
  type: "text";
  text: string;
  providerOptions?: ProviderOptions;
}
interface FilePart {
  type: "file";
  data: string | Uint8Array | ArrayBuffer | URL;
  filename?: string;
  mediaType: string;
}
interface ToolCallPart {
  type: "tool-call";
  toolCallId: string;
  input: unknown;
  providerOptions?: ProviderOptions;
}
type Output =
  | { type: "json"; value: JsonValue }
  | { type: "content"; value: Array<{ type: "text"; text: string } | FilePart> };
interface ToolResultPart {
  type: "tool-result";
  toolCallId: string;
  output: Output;
}
type Message =
  | { role: "system"; content: string; providerOptions?: ProviderOptions }
  | { role: "user"; content: string | Array<TextPart | FilePart> }
  | { role: "assistant"; content: string | Array<TextPart | ToolCallPart | ToolResultPart> }
  | { role: "tool"; content: ToolResultPart[] };

interface Tree {
  value: Json;
  children: Tree[];
  byName: Map<string, Tree>;
  seen: Set<Tree>;
}

interface Data {
  topic: string;
  json: Json;
  messages: Message[];
  tree: Tree;
  loose?: unknown;
}

declare const state: State<Data>;
declare const json: Json;
declare const message: Message;
declare const tree: Tree;

describe("Immutable", () => {
  test("leaves what has no fields to write as it is", () => {
    type Value = Date | RegExp | URL | Error | TypeError | ArrayBuffer | Uint8Array | Float64Array;
    expectTypeOf<Immutable<Value>>().toEqualTypeOf<Value>();
    expectTypeOf<Draft<Value>>().toEqualTypeOf<Value>();
    type Call = (a: string) => number;
    expectTypeOf<Immutable<Call>>().toEqualTypeOf<Call>();
    type Id = string & { readonly brand: "id" };
    expectTypeOf<Immutable<Id | undefined | null | 1n>>().toEqualTypeOf<
      Id | undefined | null | 1n
    >();
  });

  test("leaves any and unknown as they are", () => {
    expectTypeOf<Immutable<unknown>>().toBeUnknown();
    expectTypeOf<Draft<unknown>>().toBeUnknown();
    expectTypeOf<Immutable<{ a: unknown[] }>>().toEqualTypeOf<{
      readonly a: readonly unknown[];
    }>();
    // biome-ignore lint/suspicious/noExplicitAny: it is what is tested
    expectTypeOf<Immutable<any>>().toBeAny();
  });

  test("makes fields, arrays, tuples, Maps and Sets readonly to the bottom, and Draft undoes it", () => {
    interface Before {
      list: { n: number }[];
      pair: [string, number[]];
      rest: [boolean, ...string[]];
      maybe: [string?];
      none: [];
      map: Map<string, { n: number }>;
      set: Set<string[]>;
      optional?: { n: number };
    }
    interface After {
      readonly list: readonly { readonly n: number }[];
      readonly pair: readonly [string, readonly number[]];
      readonly rest: readonly [boolean, ...string[]];
      readonly maybe: readonly [string?];
      readonly none: readonly [];
      readonly map: ReadonlyMap<string, { readonly n: number }>;
      readonly set: ReadonlySet<readonly string[]>;
      readonly optional?: { readonly n: number };
    }
    expectTypeOf<Immutable<Before>>().toEqualTypeOf<After>();
    expectTypeOf<Immutable<After>>().toEqualTypeOf<After>();
    expectTypeOf<Draft<After>>().toEqualTypeOf<Before>();
    expectTypeOf<Draft<Immutable<Before>>>().toEqualTypeOf<Before>();
  });

  test("does not take an object with a name and a message for an Error", () => {
    expectTypeOf<Immutable<{ name: string; message: string }>>().toEqualTypeOf<{
      readonly name: string;
      readonly message: string;
    }>();
  });
});

describe("recursive types compile", () => {
  test("in State", () => {
    State.create<Data>({ topic: "", json, messages: [message], tree });
    State.create({ json });
    expectTypeOf(state.get("messages")).toEqualTypeOf<Message[]>();
    expectTypeOf(state.get("json")).toEqualTypeOf<Json>();
    state
      .set("json", json)
      .set("json", state.data.json)
      .set("json", { a: [1, { b: null }] });
    state.set("messages", [...state.data.messages, message]);
    state.set("tree", tree).set("tree", state.data.tree);
    state.merge({ json, messages: [message] }).merge({ messages: state.data.messages, tree });
    state.update((draft) => {
      draft.json = json;
      draft.messages.push(message);
      draft.tree.children.push(tree);
      draft.tree.byName.set("a", tree);
      for (const one of draft.messages) if (one.role === "system") one.content = "x";
    });
    // @ts-expect-error readonly
    state.data.messages.push(message);
    // @ts-expect-error a function is no JSON
    state.set("json", () => {});
  });

  test("in a State of one recursive type", () => {
    const one = State.create<{ [key: string]: Json }>({ a: 1 });
    one.set("b", [json]).merge({ c: { d: json } });
    one.update((draft) => {
      draft.a = json;
    });
  });

  test("in StateGraph and every node factory", () => {
    const inner = new StateGraph<{ json: Json }>()
      .addNode("only", ({ data }) => ({ json: [data.json as Json] }))
      .setEntryPoint("only")
      .setExitPoint("only");
    new StateGraph<Data>()
      .addNode("set", (s) => s.set("messages", [message]))
      .addNode("shorthand", ({ data }) => ({ messages: [...data.messages, message], json }))
      .addNode(
        "chain",
        chain<Data, Json>(["a", { b: 1 }], (s, item) => s.set("json", item as Json)),
      )
      .addNode(
        "parallel",
        parallel<Data, Message, Json>([message], async () => json),
      )
      .addNode(
        "route",
        route<Data>((s) => (s.data.json === null ? "a" : "b"), {
          a: (s) => s.set("json", null),
          b: () => ({ json }),
        }),
      )
      .addNode(
        "dag",
        subgraph(dag<Data>({ json: { run: () => json }, messages: { run: () => [message] } }), {
          in: (s: State<Data>) => s.data,
          out: (s, child) => s.merge(child),
        }),
      )
      .addNode(
        "subgraph",
        subgraph(inner, {
          in: (s: State<Data>) => ({ json: s.get("json") }),
          out: (s, child) => s.set("json", child.get("json")),
        }),
      )
      .addNode(
        "inferred",
        chain(
          (s) => s.data.messages,
          (s, item) => s.merge({ messages: [...s.data.messages, item] }),
        ),
      )
      .addNode(
        "measured",
        parallel(
          (s) => s.data.messages,
          async (_s, item) => item.role,
          { merge: (s, roles) => s.set("json", [...roles]) },
        ),
      )
      .addEdge("set", "shorthand", ({ data }) => data.messages.length > 0)
      .setEntryPoint("set");
  });
});
