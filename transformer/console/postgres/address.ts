import { LockError } from "../../../runtime/base/errors";
import { isPostgresUrl } from "../../../runtime/stores/postgres/recognize";
import { assertSchemaName } from "../../../runtime/stores/postgres/schema-name";
import { readTarget, type ReadTarget } from "../../../runtime/stores/postgres/target";
import { UsageError } from "../../terminal/usage-error";
import { hide } from "../port/errors";

export const OPTION = "--postgres";

/**
 * Reads the address of a database.
 *
 * @returns the database, and its name for messages, without its user, password, and parameters
 * @throws {UsageError} if the URL or the name of the schema is invalid
 */
export function addressOf(
  url: string,
  schema: string,
): { readonly name: string; readonly target: ReadTarget } {
  if (!isPostgresUrl(url)) {
    const other = /^(?:rediss?(?:\+sentinel)?|unix):/i.test(url)
      ? ", got a URL of Redis. Fix: use `--redis <url>`"
      : ", such as postgres://user@host:5432/database";
    throw new UsageError(`Expected \`${OPTION}\` to be a postgres:// URL${other}.`);
  }
  for (const secret of secretsIn(url)) if (!OWN_WORDS.has(secret)) hide(secret);
  try {
    assertSchemaName(schema, "--schema");
    return { name: nameOf(url), target: { ...readTarget(url, OPTION), schema, connections: 1 } };
  } catch (error) {
    throw error instanceof LockError ? new UsageError(`${error.message}.`) : error;
  }
}

/** The parts of a URL. A password that is not encoded may contain any character, so a user ends at the last `@`. */
const PARTS = /^(\w+):\/\/(?:(.*)@)?([^@?#]*)(?:[?#](.*))?$/s;

function nameOf(url: string): string {
  const [, protocol = "postgres", , place = ""] = PARTS.exec(url) ?? [];
  return `${protocol}://${place.replace(/\/$/, "")}`;
}

/** Common passwords that are also words of our messages. They protect nothing, and without them, nobody could read a message. */
const OWN_WORDS: ReadonlySet<string> = new Set([
  "postgres",
  "postgresql",
  "lockweave",
  "password",
  "server",
  "user",
]);

function secretsIn(url: string): readonly string[] {
  const [, , user = "", , parameters = ""] = PARTS.exec(url) ?? [];
  const [, password = ""] = /:(.*)/s.exec(user) ?? [];
  const secretParameters = [...new URLSearchParams(parameters)].filter(([name]) =>
    /pass|secret|token/i.test(name),
  );
  return [password, ...secretParameters.map(([, value]) => value)];
}
