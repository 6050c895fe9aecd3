import type { Socket } from "node:net";
import { rooted } from "../../base/root-context";
import type { Address } from "./client-port";
import { errorOf, translateError } from "./errors";
import { CLIENT_STATES } from "./states";

const ANSWERS_WITHIN_MS = 1_000;
const GREETS_WITHIN_MS = 200;

/**
 * Returns an error if the server speaks TLS and the connection does not, or vice versa. Neither side reports that: one waits forever, and
 * the other hangs up. So another connection tries the other protocol. It also receives the error of a server that has too many clients. The
 * client may lose that error, because it writes at the same time.
 *
 * @param signal ends the search
 */
export async function faultOfProtocol(
  address: Address | undefined,
  signal: AbortSignal,
): Promise<Error | undefined> {
  if (address === undefined) return undefined;
  const { host, port, isTls } = address;
  const { connect } = process.getBuiltinModule("node:net");
  const plain = connect(port, host);
  if (isTls) {
    plain.once("connect", () => plain.write("PING\r\n"));
    const reply = await firstText(plain, "data", ANSWERS_WITHIN_MS, signal);
    return reply !== undefined && /^[+-]/.test(reply) ? errorOf(CLIENT_STATES.wantsNoTls) : undefined;
  }
  const greeting = await firstText(plain, "data", GREETS_WITHIN_MS, signal);
  if (greeting?.startsWith("-") === true) return translateError(new Error(greeting.slice(1).trim()));
  if (signal.aborted) return undefined;
  const { connect: connectByTls } = process.getBuiltinModule("node:tls");
  // No data is sent over it, so its certificate does not matter.
  const secure = connectByTls({ host, port, rejectUnauthorized: false });
  const hasShakenHands = await firstText(secure, "secureConnect", ANSWERS_WITHIN_MS, signal);
  return hasShakenHands === undefined ? undefined : errorOf(CLIENT_STATES.wantsTls);
}

/** Resolves to the data of the event as text, or to undefined if the event does not come in time. Then closes the socket. */
function firstText(
  socket: Socket,
  event: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  socket.unref();
  return new Promise((resolve) => {
    const end = rooted((text: string | undefined) => {
      signal.removeEventListener("abort", onEnd);
      resolve(text);
      socket.destroy();
    });
    const onEnd = (): void => end(undefined);
    socket.once(event, (data?: Uint8Array) => end(new TextDecoder().decode(data)));
    for (const ending of ["error", "close"]) socket.on(ending, onEnd);
    socket.setTimeout(timeoutMs, onEnd);
    signal.addEventListener("abort", onEnd);
  });
}
