import { LockError } from "../../../runtime/errors";
import { redacted } from "../../../runtime/format-value";
import { connectionTo } from "../../../runtime/stores/redis/address";
import { UsageError } from "../../verify/usage-error";

/** A server's answer may repeat what it was sent, so the passwords of all given URLs are hidden from every error. */
const secrets = new Set<string>();
/** Shorter ones would hide parts of ordinary words. */
const SHORTEST_SECRET = 3;

/**
 * Reads the URL of a server.
 *
 * @returns what ioredis takes, and how the server is named in messages: without its user, password and parameters
 * @throws {UsageError} if it cannot be read
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

/** The message of an error of a server or a connection, without passwords. */
export function reasonOf(error: unknown): string {
  const { message, code } = error as { readonly message?: string; readonly code?: string };
  const said = (message === "" ? code : message) ?? String(error);
  const longestFirst = [...secrets].toSorted((one, other) => other.length - one.length);
  return longestFirst
    .reduce((text, secret) => text.replaceAll(secret, "***"), redacted(said))
    .replace(/\.+$/, "");
}

/**
 * Asks a server.
 *
 * @throws {UsageError} if it refuses, or does not answer
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
    : new UsageError(`The locks cannot be read: ${reasonOf(error)}.`);
}
