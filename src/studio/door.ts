import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { HttpError } from "./http.js";

/** Who may come in. */
export interface DoorOptions {
  readonly token?: string | undefined;
  readonly auth?: Auth | undefined;
  readonly hosts?: readonly string[] | undefined;
}

/** Says whether a request may come in; a text says who it comes from. @inline */
export type Auth = (request: Request) => boolean | string | Promise<boolean | string>;

/** The names of this machine that no other site can take. */
const loopback = ["localhost", "127.0.0.1", "[::1]"];

/** A token that nobody can guess. */
export function newToken(): string {
  return randomBytes(24).toString("base64url");
}

/** Lets requests in that come from a page of this very server, and carry its token. */
export class Door {
  readonly #token: Buffer | undefined;
  readonly #auth: Auth | undefined;
  readonly #hosts: ReadonlySet<string>;

  constructor({ token, auth, hosts = loopback }: DoorOptions) {
    this.#token = token === undefined ? undefined : digest(token);
    this.#auth = auth;
    this.#hosts = new Set(hosts.map((host) => host.toLowerCase()));
  }

  /**
   * Refuses a request by another name of this server, which a hostile site may have pointed here, and one that a page of another
   * site makes.
   *
   * @throws HttpError
   */
  checkPlace(request: Request): void {
    const host = (request.headers.get("host") ?? new URL(request.url).host).toLowerCase();
    if (!this.#isAllowed(host)) {
      const help = "the option hosts, or --allow-host of the command, names it";
      throw new HttpError(403, "FORBIDDEN", "the request's Host is not allowed", help);
    }
    const origin = request.headers.get("origin");
    if (origin === null) return;
    const from = URL.canParse(origin) ? new URL(origin).host : "";
    // Behind a proxy the Host may be another name of this server.
    if (from !== host && !this.#isNamed(from)) {
      throw new HttpError(403, "FORBIDDEN", "the request's Origin is not allowed");
    }
  }

  /**
   * Who makes a request.
   *
   * @throws HttpError if it may not come in.
   */
  async admit(request: Request): Promise<string | undefined> {
    const who = await this.#who(request);
    if (who !== false) return typeof who === "string" ? who : undefined;
    const help = "open the link that waymark studio prints, which has the token";
    const message = "the request needs a valid token: Authorization: Bearer …";
    throw new HttpError(401, "UNAUTHORIZED", message, help);
  }

  async #who(request: Request): Promise<boolean | string> {
    const given = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
    if (given !== undefined && this.#token !== undefined) {
      if (timingSafeEqual(digest(given), this.#token)) return true;
    }
    return this.#auth === undefined ? false : this.#auth(request);
  }

  #isAllowed(host: string): boolean {
    return this.#hosts.has(host) || this.#hosts.has(withoutPort(host));
  }

  /** A name that was given, and not only one that every machine has. */
  #isNamed(host: string): boolean {
    return !loopback.includes(withoutPort(host)) && this.#isAllowed(host);
  }
}

function withoutPort(host: string): string {
  return host.replace(/:\d+$/, "");
}

/** Texts of any length become the same length, so that comparing takes as long for all. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
