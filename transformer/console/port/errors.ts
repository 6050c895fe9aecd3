import { redacted } from "../../../runtime/base/format-value";
import { UsageError } from "../../terminal/usage-error";

/** The secrets of all given URLs, which are removed from every error message. A server's reply may repeat what a client sent. */
const secrets = new Set<string>();
/** Shorter secrets would hide parts of ordinary words. */
const SHORTEST_SECRET = 3;

/** Removes a secret from all later messages, also in its decoded form. */
export function hide(secret: string | undefined): void {
  for (const form of [secret, decodedIfPossible(secret)])
    if (form !== undefined && form.length >= SHORTEST_SECRET) secrets.add(form);
}

function decodedIfPossible(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Returns the message of a server or connection error without secrets. */
export function errorMessage(error: unknown): string {
  const { message, code } = error as { readonly message?: string; readonly code?: string };
  const original = (message === "" ? code : message) ?? String(error);
  const longestFirst = [...secrets].toSorted((one, other) => other.length - one.length);
  return longestFirst
    .reduce((text, secret) => text.replaceAll(secret, "***"), redacted(original))
    .replace(/\.+$/, "");
}

/**
 * Sends a request to a server.
 *
 * @throws {UsageError} if the server rejects it or does not answer
 */
export async function ask<Reply>(send: () => Promise<Reply>): Promise<Reply> {
  try {
    return await send();
  } catch (error) {
    throw cannotRead(error);
  }
}

export function cannotRead(error: unknown): UsageError {
  return error instanceof UsageError
    ? error
    : new UsageError(`The locks cannot be read: ${errorMessage(error)}.`);
}
