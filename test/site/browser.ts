import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";

/** The site as `npm run docs` has built it. */
export const site = join(import.meta.dirname, "../../docs");

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
};

/** Serves the site on a free port of this machine, as any web server would. */
export async function serve(): Promise<{ url: string; close: () => void }> {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://site");
    const path = join(site, normalize(decodeURIComponent(pathname)));
    try {
      const body = await readFile(path.endsWith("/") ? join(path, "index.html") : path);
      response.writeHead(200, { "content-type": types[extname(path)] ?? "text/html" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() };
}

/** Debian's chromium, or the one of CHROMIUM_PATH. */
export function launch(): Promise<Browser> {
  const path = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";
  if (!existsSync(path)) {
    throw new Error(`no browser at ${path}: install chromium, or set CHROMIUM_PATH`);
  }
  return chromium.launch({
    executablePath: path,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** Gathers what a page complains about, and what it wants from elsewhere. */
export function complaintsOf(page: Page, url: string): string[] {
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("response", (response) => {
    if (!response.ok()) complaints.push(`${response.status()}: ${response.url()}`);
  });
  page.on("request", (request) => {
    const isOwn = request.url().startsWith(url) || request.url().startsWith("data:");
    if (!isOwn) complaints.push(`from elsewhere: ${request.url()}`);
  });
  return complaints;
}
