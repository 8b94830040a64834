import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { messageOf } from "../../errors.js";
import type { AnyGraph } from "../../run/state-graph.js";
import type { Command } from "../command.js";
import type { Context } from "../context.js";
import { exit, problem, usage } from "../exit.js";
import type { Io } from "../io.js";

const PORT = 4200;
const HOST = "127.0.0.1";
const loopback: ReadonlySet<string> = new Set([HOST, "localhost", "::1"]);

/** `waymark studio`. */
export const command: Command = {
  name: "studio",
  summary: "Open a web page that shows the runs of a store",
  details:
    "It serves the page until Ctrl-C and prints its link, which contains the token that every request needs. " +
    "Runs of the config's graphs can be continued there. WAYMARK_STUDIO_TOKEN is the same as --token.",
  options: [
    { flags: "--port <port>", text: `where to listen; ${PORT} by default, or any that is free` },
    { flags: "--host <address>", text: `${HOST} by default; any other needs --token` },
    {
      flags: "--allow-host <name>",
      text: "another host name under which the page is opened, for example behind a proxy",
      many: true,
    },
    {
      flags: "--token <token>",
      text: "16 characters or more; a new one for each start by default",
    },
    { flags: "--read-only", text: "only look: nothing can be changed" },
    { flags: "--no-open", text: "print the link, and do not open a browser" },
  ],
  examples: ["waymark studio", "waymark studio --store sqlite:runs.db --read-only --no-open"],
  run: async (context, values) => {
    const { io, print } = context;
    const host = values.text("host") ?? HOST;
    const token = values.text("token") ?? (io.env.WAYMARK_STUDIO_TOKEN || undefined);
    if (!loopback.has(host) && token === undefined) {
      throw usage(
        `--host ${host} needs --token`,
        "anybody who can reach that address could read the runs",
      );
    }
    const readOnly = values.flag("readOnly");
    const [{ studio }, { serverOf }, opened, { observer, redact }] = await Promise.all([
      import("../../studio/studio.js"),
      import("../../studio/node.js"),
      context.store(readOnly ? "read" : "write", false),
      context.config(),
    ]);
    const log = await context.log(opened);
    const handler = studio({
      store: opened.store,
      name: opened.name,
      graphs: await graphsOf(context),
      hosts: [...(await namesOf(host)), ...values.texts("allowHost")],
      actor: context.audit.actor ?? "",
      readOnly,
      ...(token !== undefined && { token }),
      ...(observer !== undefined && { observer }),
      ...(redact !== undefined && { redact }),
      ...(log !== undefined && { log }),
    });
    const server = serverOf(handler);
    const port = await listen(server, host, values.count("port", 0, 65_535));
    const url = `http://${urlHost(host)}:${port}/`;
    // A generated token is valid until Ctrl-C; a given one must not end up in a log.
    const isShown = token === undefined || io.stdout.isTTY === true;
    const link = isShown ? `${url}#token=${handler.token}` : url;
    print.result({ url: link, store: opened.name, readOnly }, () =>
      print.facts([
        ["studio", link],
        ["store", `${opened.name}${readOnly ? " (read-only)" : ""}`],
      ]),
    );
    if (io.stdout.isTTY === true && !values.denied("open")) await openBrowser(io, link);
    await untilInterrupted(io);
    server.close();
    await handler.close();
    server.closeAllConnections();
    return exit.ok;
  },
};

/** The config's graphs; a page that only shows runs works without them. */
async function graphsOf(context: Context): Promise<Readonly<Record<string, AnyGraph>>> {
  const config = await context.config();
  if (config.graphs === undefined) return {};
  const { loadGraphs } = await import("../config/graphs.js");
  return loadGraphs(config).catch((error: unknown) => {
    context.print.note(`runs can't be continued from here: ${messageOf(error)}`);
    return {};
  });
}

/** The host names under which requests may arrive: those of the address, or all that this machine has. */
async function namesOf(host: string): Promise<readonly string[]> {
  if (loopback.has(host)) return ["localhost", HOST, "[::1]"];
  if (host !== "0.0.0.0" && host !== "::") return [urlHost(host)];
  const { hostname, networkInterfaces } = await import("node:os");
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  return ["localhost", hostname(), ...addresses.map(({ address }) => urlHost(address))];
}

function urlHost(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** Listens on the given port; without one, on the default port or any free one. */
async function listen(server: Server, host: string, given: number | undefined): Promise<number> {
  const fail = (error: unknown): never => {
    throw problem(`the studio can't listen at ${host}:${given ?? PORT}: ${messageOf(error)}`);
  };
  if (given !== undefined) return listenAt(server, host, given).catch(fail);
  return listenAt(server, host, PORT)
    .catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EADDRINUSE") throw error;
      return listenAt(server, host, 0);
    })
    .catch(fail);
}

async function listenAt(server: Server, host: string, port: number): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function openBrowser(io: Io, link: string): Promise<void> {
  const { spawn } = await import("node:child_process");
  const usual: Readonly<Record<string, readonly [string, ...string[]]>> = {
    darwin: ["open"],
    win32: ["rundll32", "url.dll,FileProtocolHandler"],
  };
  const [program, ...args] = io.env.BROWSER
    ? [io.env.BROWSER]
    : (usual[process.platform] ?? ["xdg-open"]);
  // Without a browser, the printed link still works.
  spawn(program, [...args, link], { stdio: "ignore", detached: true })
    .on("error", () => {})
    .unref();
}

function untilInterrupted(io: Io): Promise<void> {
  return new Promise((resolve) => {
    const stop = io.onInterrupt(() => {
      stop();
      resolve();
    });
  });
}
