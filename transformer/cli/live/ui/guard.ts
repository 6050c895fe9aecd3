import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/**
 * Lets in who knows the token, from the page itself. The port is open to every program of this machine, and to every page that its
 * browser shows: a page elsewhere may send requests here, and with a name of its own that leads to 127.0.0.1 (DNS rebinding) it could
 * read the answers. So a request has to name this host, and what a browser sends from another page is refused.
 */
export class Guard {
  readonly token = randomBytes(32).toString("base64url");

  /** Whether the request is for this host, and from no page elsewhere. */
  isOwn({ headers }: IncomingMessage, port: number): boolean {
    const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
    const { host = "", origin, "sec-fetch-site": site = "none" } = headers;
    const isFromHere = origin === undefined || hosts.some((one) => origin === `http://${one}`);
    return hosts.includes(host) && isFromHere && ["none", "same-origin"].includes(site);
  }

  /** Whether it bears the token. */
  isBearer({ headers: { authorization = "" } }: IncomingMessage): boolean {
    return timingSafeEqual(digest(authorization), digest(`Bearer ${this.token}`));
  }
}

/** Of one length, whatever was sent. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
