/**
 * Respect a rate limit
 *
 * Wait as long as the provider says, and keep the results of the node's other calls.
 */
import { append, END, MemoryStore, RetryableError, State, StateGraph } from "waymark";

let calls = 0;
async function ask(question: string): Promise<string> {
  if (++calls === 2) throw new RetryableError("429", { retryAfter: 3 }); // from the header of the answer
  return `${question}!`;
}

const graph = new StateGraph<{ questions: string[]; answers: string[] }>({
  checkpoint: { store: new MemoryStore(), interval: 1 },
  reducers: { answers: append },
})
  .addNode(
    "ask",
    async (state, context) => {
      const answers: string[] = [];
      for (const question of state.data.questions) {
        answers.push(await context.once(question, () => ask(question)));
      }
      return { answers };
    },
    { retry: { maxAttempts: 5 } },
  )
  .addEdge("ask", END)
  .setEntryPoint("ask");

const { data } = await graph.execute(
  State.create({ questions: ["a", "b", "c"], answers: [] as string[] }),
);
console.log(data.answers.join(" "), calls); // a! b! c! 4
