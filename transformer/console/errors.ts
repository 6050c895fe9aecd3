import { LockError } from "../../runtime/base/errors";
import { redacted } from "../../runtime/base/format-value";
import { connectionTo } from "../../runtime/stores/redis/address";
import { UsageError } from "../terminal/usage-error";

/** The secrets of all given URLs, which are removed from every error message. A server's reply may repeat what a client sent. */
const secrets = new Set<string>();
/** Shorter secrets would hide parts of ordinary words. */
const SHORTEST_SECRET = 3;

/**
 * Parses the URL of a server.
 *
 * @returns the options for ioredis, and the server's name for messages, without its user, password, and parameters
 * @throws {UsageError} if the URL is invalid
 */
export function addressOf(url: string): {
  readonly name: string;
  readonly connection: ReturnType<typeof connectionTo>;
} {
  try {
    const connection = connectionTo(url, "--redis");
    const { password, sentinelPassword, path, sentinels, name = "" } = connection.options;
    for (const secret of [password, sentinelPassword, ...secretsIn(connection.url)]) hide(secret);
    if (path !== undefined) return { name: `unix://${path}`, connection };
    if (sentinels === undefined) return { name: nameOf(connection.url ?? ""), connection };
    const hosts = sentinels.map(({ host, port }) => `${host}:${port}`).join();
    return { name: `redis+sentinel://${hosts}/${name}`, connection };
  } catch (error) {
    throw error instanceof LockError ? new UsageError(error.message) : error;
  }
}

function nameOf(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname.replace(/^\/$/, "")}`;
}

function secretsIn(url: string | undefined): (string | undefined)[] {
  if (url === undefined) return [];
  const { password, searchParams } = new URL(url);
  return [password, decodedIfPossible(password), ...searchParams.values()];
}

function decodedIfPossible(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function hide(secret: string | undefined): void {
  if (secret !== undefined && secret.length >= SHORTEST_SECRET) secrets.add(secret);
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
