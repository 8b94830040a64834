import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { HttpError } from "./http.js";

/** Who may use the studio. */
export interface AccessOptions {
  readonly token?: string | undefined;
  readonly auth?: Auth | undefined;
  readonly hosts?: readonly string[] | undefined;
}

/** Returns whether a request is allowed; a string also names the user who makes it. */
export type Auth = (request: Request) => boolean | string | Promise<boolean | string>;

/** The names of this machine, which no other site can resolve to it. */
const loopback = ["localhost", "127.0.0.1", "[::1]"];

/** An unguessable token. */
export function newToken(): string {
  return randomBytes(24).toString("base64url");
}

/** Accepts requests that come from the studio's own page and carry its token. */
export class AccessCheck {
  readonly #token: Buffer | undefined;
  readonly #auth: Auth | undefined;
  readonly #hosts: ReadonlySet<string>;

  constructor({ token, auth, hosts = loopback }: AccessOptions) {
    this.#token = token === undefined ? undefined : digest(token);
    this.#auth = auth;
    this.#hosts = new Set(hosts.map((host) => host.toLowerCase()));
  }

  /**
   * Rejects a request whose Host is not a name of this server, since a hostile site may resolve its own name to this
   * machine (DNS rebinding), and a request from a page of another site.
   *
   * @throws HttpError if it is rejected.
   */
  checkOrigin(request: Request): void {
    const host = (request.headers.get("host") ?? new URL(request.url).host).toLowerCase();
    if (!this.#isAllowed(host)) {
      const help = "the option hosts, or --allow-host of the command, names it";
      throw new HttpError(403, "FORBIDDEN", "the request's Host is not allowed", help);
    }
    const origin = request.headers.get("origin");
    if (origin === null) return;
    const from = URL.canParse(origin) ? new URL(origin).host : "";
    // Behind a proxy, the Host may be another name of this server.
    if (from !== host && !this.#isNamed(from)) {
      throw new HttpError(403, "FORBIDDEN", "the request's Origin is not allowed");
    }
  }

  /**
   * Returns who makes a request, if known.
   *
   * @throws HttpError if the request is not allowed.
   */
  async authenticate(request: Request): Promise<string | undefined> {
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

  /** Whether a name is configured, and is not one that every machine has. */
  #isNamed(host: string): boolean {
    return !loopback.includes(withoutPort(host)) && this.#isAllowed(host);
  }
}

function withoutPort(host: string): string {
  return host.replace(/:\d+$/, "");
}

/** Hashes a token, so that a comparison takes the same time whatever its length. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
