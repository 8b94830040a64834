import { readFile } from "node:fs/promises";
import { HttpError, securityHeaders } from "./http.js";

/** The built page. This file is two levels below the package, both in src/ and in dist/. */
const built = new URL("../../dist/studio/page/", import.meta.url);

const types: Readonly<Record<string, string>> = {
  css: "text/css",
  html: "text/html",
  ico: "image/x-icon",
  js: "text/javascript",
  png: "image/png",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

/** Allows the page to load its own files and to connect to its own server. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** A file of the page. None of them contains data. */
export async function pageFile(path: string): Promise<Response> {
  const name = path === "/" ? "index.html" : path.slice(1);
  const [, extension = ""] = /^[\w-]+(?:\.[\w-]+)*\.(\w+)$/.exec(name) ?? [];
  const type = Object.hasOwn(types, extension) ? types[extension] : undefined;
  if (type === undefined) throw notFound();
  const headers = {
    ...securityHeaders,
    "content-security-policy": policy,
    "content-type": `${type}${type.startsWith("text/") ? "; charset=utf-8" : ""}`,
  };
  try {
    return new Response(await readFile(new URL(name, built)), { headers });
  } catch (error) {
    if (path !== "/" || Reflect.get(Object(error), "code") !== "ENOENT") throw notFound();
    const text = "The page is not built. In a clone of waymark, run npm run build.\n";
    return new Response(text, {
      status: 503,
      headers: { ...headers, "content-type": "text/plain; charset=utf-8" },
    });
  }
}

/** The error for an unknown route. */
export function notFound(): HttpError {
  return new HttpError(404, "NOT_FOUND", "there is no such route");
}
