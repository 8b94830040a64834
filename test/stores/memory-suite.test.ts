import { test } from "vitest";
import { MemoryStore } from "waymark";
import { testCheckpointStore } from "waymark/testing";

testCheckpointStore({ name: "MemoryStore", create: () => new MemoryStore(), test });
