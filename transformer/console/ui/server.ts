import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { AddressInfo } from "node:net";
import { UsageError } from "../../terminal/usage-error";
import { errorMessage } from "../port/errors";
import { Guard } from "./guard";
import type { Releases } from "./releases";
import type { State } from "./state";

const PAGE: Readonly<Record<string, readonly [file: string, type: string]>> = {
  "/": ["index.html", "text/html"],
  "/page.js": ["page.js", "text/javascript"],
  "/style.css": ["style.css", "text/css"],
  "/icon.svg": ["icon.svg", "image/svg+xml"],
};

const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

const LONGEST_BODY = 100_000;

/** Provides the data for the requests of the page. */
export interface Answers {
  /**
   * Returns the current state.
   *
   * @param find a part of the keys to show
   * @param lock the key of the lock that is shown in detail
   */
  state(find: string, lock: string | undefined): State;
  readonly releases: Releases;
}

/**
 * Serves the page and its requests, on loopback only.
 *
 * @param port 0 means any free port
 * @returns the page's address. The token follows the `#`, so it appears in no request and no log.
 * @throws {UsageError} if the port is in use
 */
export async function serve(
  answers: Answers,
  port: number,
): Promise<{ readonly server: Server; readonly url: string }> {
  const guard = new Guard();
  const files = new Map(
    Object.entries(PAGE).map(([path, [file, type]]) => [path, { type, text: readFileSync(pageFile(file)) }]),
  );
  const server = createServer((request, response) => {
    void answer(request, response).catch((error: unknown) => {
      const message = errorMessage(error);
      if (response.headersSent) response.destroy();
      else send(response, 500, { error: message });
    });
  });
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { port: ownPort } = server.address() as AddressInfo;
    if (!guard.isOwn(request, ownPort))
      return send(response, 403, { error: "Requests from other origins are not allowed." });
    const { pathname, searchParams } = new URL(request.url ?? "/", `http://127.0.0.1:${ownPort}`);
    const what = `${request.method ?? ""} ${pathname}`;
    const file = request.method === "GET" ? files.get(pathname) : undefined;
    if (file !== undefined) {
      response.writeHead(200, { ...HEADERS, "content-type": `${file.type}; charset=utf-8` }).end(file.text);
      return;
    }
    if (!guard.isBearer(request))
      return send(response, 401, { error: "Open the address that `lockweave ui` printed." });
    if (what === "GET /state")
      return send(
        response,
        200,
        answers.state(searchParams.get("find") ?? "", searchParams.get("lock") ?? undefined),
      );
    if (what !== "POST /release" && what !== "POST /confirm")
      return send(response, 404, { error: `There is no ${pathname}.` });
    const { key, now, confirmation } = await bodyOf(request);
    if (what === "POST /confirm" && typeof confirmation === "string")
      return send(response, 200, { result: await answers.releases.confirm(confirmation) });
    if (what === "POST /release" && typeof key === "string") {
      const reply = await answers.releases.ask(key, now === true);
      return send(response, 200, typeof reply === "string" ? { result: reply } : reply);
    }
    send(response, 400, { error: "Expected a JSON object with a key, or a confirmation." });
  };
  server.listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    throw new UsageError(`Cannot serve the page: ${(error as Error).message}.`);
  }
  const { port: ownPort } = server.address() as AddressInfo;
  return { server, url: `http://127.0.0.1:${ownPort}/#token=${guard.token}` };
}

function send(response: ServerResponse, status: number, value: object): void {
  response
    .writeHead(status, { ...HEADERS, "content-type": "application/json; charset=utf-8" })
    .end(JSON.stringify(value));
}

/** Reads the JSON object of a request. Returns an empty object if the body is not a JSON object or is too long. */
async function bodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    if (text.length <= LONGEST_BODY) text += String(chunk);
  }
  try {
    const value: unknown = text.length > LONGEST_BODY ? undefined : JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function pageFile(name: string): string {
  const root = dirname(require.resolve("lockweave/package.json"));
  return join(root, "dist/transformer/page", name);
}
