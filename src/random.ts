import { v7 } from "uuid";

/** Where waymark gets chance from. The simulator puts one in its place that a seed repeats. */
export interface Chance {
  /** A number from 0 up to, not including, 1. */
  random(): number;
  /** An id that nobody else makes. */
  newId(): string;
}

const systemChance: Chance = { random: () => Math.random(), newId: () => v7() };

let current = systemChance;

/** A number from 0 up to, not including, 1. */
export function random(): number {
  return current.random();
}

/** A uuid v7, so ids sort by the time they were made. */
export function newId(): string {
  return current.newId();
}

/** Puts another source of chance in place; returns the way back. */
export function useChance(chance: Chance): () => void {
  const before = current;
  current = chance;
  return () => {
    current = before;
  };
}
