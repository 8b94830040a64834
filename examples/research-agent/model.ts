import type { Usage } from "waymark";
import type { Page } from "./library.js";

/** What a model gives back, and what it took. */
export interface Answer<T> {
  readonly value: T;
  readonly usage: Usage;
}

/** What the reviewer thinks of a text. */
export interface Review {
  readonly score: number;
  readonly missing: string;
}

/** How often the model was asked. */
export const calls = { write: 0, review: 0 };

/** Stands in for a model that writes: offline, and the same answer each time. */
export async function write(topic: string, pages: readonly Page[]): Promise<Answer<string>> {
  calls.write++;
  const parts = pages.map(({ text }, index) => `${text} [${index + 1}]`);
  const value = [topic, ...parts].join("\n\n");
  return { value, usage: usageOf(pages.map(({ text }) => text).join(), value) };
}

/** Stands in for a model that reviews: it looks for certain things. */
export async function review(text: string): Promise<Answer<Review>> {
  calls.review++;
  const wanted = ["path", "graves", "animals"];
  const missing = wanted.filter((word) => !text.includes(word));
  const score = (wanted.length - missing.length) / wanted.length;
  return { value: { score, missing: missing[0] ?? "" }, usage: usageOf(text, missing.join()) };
}

/** About four characters are a token; prices are per million of them. */
function usageOf(input: string, output: string): Usage {
  const inputTokens = Math.ceil(input.length / 4);
  const outputTokens = Math.ceil(output.length / 4);
  return { inputTokens, outputTokens, costUsd: (inputTokens * 3 + outputTokens * 15) / 1e6 };
}
