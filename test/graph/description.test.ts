import { describe, expect, test } from "vitest";
import { parseTopology } from "../../src/graph/description.js";
import { linear } from "../graphs.js";

const { topology } = linear(["a", "b"]);

describe("a topology that was saved", () => {
  test("is read back as it was", () => {
    expect(parseTopology(JSON.stringify(topology))).toEqual(topology);
  });

  test.each([
    ["no JSON", "{"],
    ["a list", "[]"],
    ["null", "null"],
    ["another version", JSON.stringify({ ...topology, version: "1" })],
    ["no name", JSON.stringify({ ...topology, name: 1 })],
    ["nodes that are no list", JSON.stringify({ ...topology, nodes: {} })],
    ["an edge to nowhere", JSON.stringify({ ...topology, edges: [{ from: "a" }] })],
    ["a null among the nodes", JSON.stringify({ ...topology, nodes: [null] })],
    ["tasks without names", JSON.stringify({ ...topology, tasks: [{}] })],
  ])("is not read if it is damaged: %s", (_what, text) => {
    expect(parseTopology(text)).toBeUndefined();
  });
});
