import { expectTypeOf, test } from "vitest";
import {
  type ChainError,
  type ErrorCode,
  isWaymarkError,
  type ParallelError,
  type RouteError,
  type WaymarkError,
} from "waymark";
import type { ErrorWithCode } from "../../src/errors.js";

test("isWaymarkError gives the class of a node factory's error", () => {
  const error = {} as unknown;
  if (isWaymarkError(error, "CHAIN_FAILED")) expectTypeOf(error).toEqualTypeOf<ChainError>();
  if (isWaymarkError(error, "PARALLEL_FAILED")) expectTypeOf(error).toEqualTypeOf<ParallelError>();
  if (isWaymarkError(error, "ROUTE_UNKNOWN")) expectTypeOf(error).toEqualTypeOf<RouteError>();
});

test("every code narrows to a class of its own, except those that carry nothing more", () => {
  type Unnarrowed = { [C in ErrorCode]: WaymarkError extends ErrorWithCode<C> ? C : never };
  expectTypeOf<Unnarrowed[ErrorCode]>().toEqualTypeOf<"STORE" | "QUEUE">();
});

test("the class that a code narrows to carries that code", () => {
  type Foreign = { [C in ErrorCode]: C extends ErrorWithCode<C>["code"] ? never : C };
  expectTypeOf<Foreign[ErrorCode]>().toEqualTypeOf<never>();
});
