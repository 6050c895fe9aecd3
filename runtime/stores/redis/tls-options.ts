import { errorOf } from "./errors";
import { CLIENT_STATES } from "./states";

/**
 * Returns an error if Node cannot use these options of `tls.connect()`. Node throws before it opens a socket, so another attempt can never
 * succeed.
 */
export function faultOfTls(options: unknown): Error | undefined {
  if (typeof options !== "object" || options === null) return undefined;
  try {
    const { createSecureContext } = process.getBuiltinModule("node:tls");
    createSecureContext(options);
    return undefined;
  } catch (error) {
    return errorOf(CLIENT_STATES.tlsOptions, error instanceof Error ? error : undefined);
  }
}
