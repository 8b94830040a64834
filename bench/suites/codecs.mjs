import { microsPerStep } from "../lib/contender.mjs";
import { compare } from "../lib/measure.mjs";
import { isBuilt } from "../lib/waymark.mjs";

export const name = "codecs";
export const title = "P8: a State as JSON and back, and as a document";

const sizes = [1, 10, 100, 1000];
const floors = { encode: "JSON.stringify", decode: "JSON.parse" };
const goals = {
  encode: [{ id: "P8", times: "floor", atMost: 1.3 }],
  decode: [{ id: "P8", times: "floor", atMost: 1.5 }],
};

export async function run() {
  if (!isBuilt) return [];
  const tables = [];
  for (const kilobytes of sizes) {
    for (const way of ["encode", "decode"]) tables.push(await plain(way, kilobytes));
  }
  for (const way of ["encode", "decode"]) tables.push(await sealed(way, 100));
  return tables;
}

function contender(way, kind, kilobytes, steps, codec) {
  return microsPerStep("codec", steps, { way, kind, kilobytes, ...(codec && { codec }) });
}

function plain(way, kilobytes) {
  const steps = Math.ceil(5000 / kilobytes);
  const of = (kind, count = steps) => contender(way, kind, kilobytes, count);
  return compare({
    title: `${way} a conversation of ${kilobytes} KB (${steps} times)`,
    unit: "µs",
    contenders: [
      { name: floors[way], role: "floor", ...of("json") },
      { name: "waymark, State and JSON", role: "ours", ...of("waymark"), goals: goals[way] },
      { name: "waymark, a document with its SHA-256", role: "ours", ...of("document") },
      { name: `${floors[way]}, bytes and SHA-256`, role: "reference", ...of("hashed") },
      { name: `v8.${way === "encode" ? "" : "de"}serialize`, role: "reference", ...of("v8") },
      {
        name: "LangGraph.js JsonPlusSerializer",
        role: "peer",
        ...of("langgraph", Math.ceil(steps / 10)),
      },
    ],
  });
}

function sealed(way, kilobytes) {
  const steps = 50;
  const of = (codec) => contender(way, "document", kilobytes, steps, codec);
  return compare({
    title: `${way} a document of ${kilobytes} KB, sealed (${steps} times)`,
    unit: "µs",
    contenders: [
      { name: floors[way], role: "floor", ...contender(way, "json", kilobytes, steps) },
      { name: "in clear", role: "ours", ...of({}) },
      { name: "gzip", role: "ours", ...of({ compress: "gzip" }) },
      { name: "brotli", role: "ours", ...of({ compress: "brotli" }) },
      { name: "AES-256-GCM", role: "ours", ...of({ encrypt: true }) },
      {
        name: "brotli and AES-256-GCM",
        role: "ours",
        ...of({ compress: "brotli", encrypt: true }),
      },
    ],
  });
}
