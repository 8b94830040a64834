/**
 * A Next.js route handler
 *
 * `app/runs/route.ts`: a handler is a function from `Request` to `Response`. The stream ends when the run stops.
 */
import { END, State, StateGraph } from "waymark";

const graph = new StateGraph<{ topic: string; text: string }>({ checkpoint: { interval: 1 } })
  .addNode("write", async (state, context) => {
    for (const word of ["about", state.data.topic]) context.emit("token", { word });
    return { text: `about ${state.data.topic}` };
  })
  .addEdge("write", END)
  .setEntryPoint("write");

/** What `context.emit("token", …)` carries. */
declare module "waymark" {
  interface EventMap {
    token: { readonly word: string };
  }
}

export async function POST(request: Request): Promise<Response> {
  const { topic } = (await request.json()) as { topic: string };
  const run = graph.start(State.create({ topic, text: "" }));
  const encoder = new TextEncoder();
  const body = new ReadableStream({
    async start(controller) {
      for await (const { type, data } of run.events({ from: "start" })) {
        if (type === "token") controller.enqueue(encoder.encode(`${data.word} `));
      }
      controller.close();
    },
  });
  return new Response(body, { headers: { "x-run-id": run.runId } });
}

const request = new Request("http://localhost/runs", {
  method: "POST",
  body: '{"topic":"cairns"}',
});
console.log((await (await POST(request)).text()).trim()); // about cairns
