import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { ModelMessage } from "ai";
import type { JsonValue } from "type-fest";
import { describe, expectTypeOf, test } from "vitest";
import { type StandardSchema, State, StateGraph } from "waymark";
import { z } from "zod";

interface Chat {
  messages: ModelMessage[];
  memory: JsonValue;
}

describe("data of other libraries", () => {
  test("messages of an LLM SDK and JSON values fit a State and a graph", () => {
    const state = State.create<Chat>({ messages: [], memory: null });
    expectTypeOf(state.get("messages")).toEqualTypeOf<ModelMessage[]>();
    expectTypeOf(state.get("memory")).toEqualTypeOf<JsonValue>();
    state.set("messages", [{ role: "user", content: "Hello" }]);
    state.update((draft) => {
      draft.messages.push({ role: "user", content: "Hello" });
      draft.memory = { seen: [1, 2] };
    });
    new StateGraph<Chat>().addNode("answer", (given) => ({
      messages: [...given.get("messages"), { role: "assistant", content: "Hi" }],
    }));
  });

  test("a schema of any JSON gives the data its type", () => {
    const graph = new StateGraph({ schema: z.object({ answer: z.json() }) });
    graph.addNode("think", (state) => ({ answer: [state.get("answer")] }));
  });
});

test("our Standard Schema is the specification's", () => {
  expectTypeOf<StandardSchemaV1<unknown, number>>().toExtend<StandardSchema<unknown, number>>();
  expectTypeOf<StandardSchema<unknown, number>>().toExtend<StandardSchemaV1<unknown, number>>();
});
