import { LockError } from "../../../runtime/base/errors";
import { isPostgresUrl } from "../../../runtime/stores/postgres/recognize";
import { connectionTo, expectedRedis, type Connection } from "../../../runtime/stores/redis/address";
import { UsageError } from "../../terminal/usage-error";
import { hide } from "../port/errors";

const OPTION = "--redis";

/**
 * Parses the URL of a server.
 *
 * @returns the server, and its name for messages, without its user, password, and parameters
 * @throws {UsageError} if the URL is invalid
 */
export function addressOf(url: string): {
  readonly name: string;
  readonly connection: Connection;
} {
  if (isPostgresUrl(url)) {
    throw new UsageError(
      `Expected \`${OPTION}\` to be a redis:// URL, got a postgres:// URL. Fix: use \`--postgres <url>\`.`,
    );
  }
  try {
    const connection = connectionTo(url, OPTION);
    for (const secret of secretsIn(url, connection)) hide(secret);
    return { name: nameOf(url, connection), connection };
  } catch (error) {
    if (!(error instanceof LockError)) throw error;
    const message = error.message.replace(
      expectedRedis(OPTION),
      `Expected \`${OPTION}\` to be a redis:// URL`,
    );
    throw new UsageError(message.endsWith(".") ? message : `${message}.`);
  }
}

function nameOf(url: string, { path, sentinels }: Connection): string {
  if (path !== undefined) return `unix://${path}`;
  if (sentinels !== undefined) {
    const hosts = sentinels.hosts.map(({ host, port }) => `${host}:${port}`).join();
    return `redis+sentinel://${hosts}/${sentinels.name}`;
  }
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname.replace(/^\/$/, "")}`;
}

function secretsIn(url: string, { password, path, sentinels }: Connection): (string | undefined)[] {
  if (path !== undefined || sentinels !== undefined) return [password, sentinels?.password];
  const { password: encoded, searchParams } = new URL(url);
  return [password, encoded, ...searchParams.values()];
}
