import { v7 } from "uuid";

/** The source of randomness in waymark. The simulator replaces it with a seeded one. */
export interface Chance {
  /** A number from 0 up to, not including, 1. */
  random(): number;
  /** A unique id. */
  newId(): string;
}

const systemChance: Chance = { random: () => Math.random(), newId: () => v7() };

let current = systemChance;

/** A number from 0 up to, not including, 1. */
export function random(): number {
  return current.random();
}

/** A uuid v7, so ids sort by creation time. */
export function newId(): string {
  return current.newId();
}

/** Installs another source; returns a function that restores the previous one. */
export function useChance(chance: Chance): () => void {
  const before = current;
  current = chance;
  return () => {
    current = before;
  };
}
