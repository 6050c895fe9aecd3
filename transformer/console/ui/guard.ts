import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/**
 * Accepts only requests from the page itself that carry the token. Every program on this machine can reach the port, and so can every page
 * in its browser. A foreign page may send requests here. With DNS rebinding (its own host name resolving to 127.0.0.1), it could also read
 * the replies. So a request must name this host, and requests that a browser sends from another page are rejected.
 */
export class Guard {
  readonly token = randomBytes(32).toString("base64url");

  /** Whether the request names this host and does not come from another page. */
  isOwn({ headers }: IncomingMessage, port: number): boolean {
    const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
    const { host = "", origin, "sec-fetch-site": site = "none" } = headers;
    const isFromHere = origin === undefined || hosts.some((one) => origin === `http://${one}`);
    return hosts.includes(host) && isFromHere && ["none", "same-origin"].includes(site);
  }

  /** Whether the request carries the token. */
  isBearer({ headers: { authorization = "" } }: IncomingMessage): boolean {
    return timingSafeEqual(digest(authorization), digest(`Bearer ${this.token}`));
  }
}

/** Hashes the text, because `timingSafeEqual` needs inputs of equal length. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
