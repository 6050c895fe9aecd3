import { LockOptionError } from "../../base/errors";
import { isOptions, readOptions } from "../../base/options";
import { formatValue } from "../../base/format-value";

/**
 * The address of a Redis: a `redis://` URL, `rediss://` for TLS, `unix:///path/to/redis.sock?db=0` for a socket, or
 * `redis+sentinel://host:26379,host2:26379/master` for the master that sentinels name. An object with `tls`, the options of Node's
 * `tls.connect()`, uses TLS: `{ url: "rediss://host", tls: { ca } }`.
 */
export type RedisAddress = string | { readonly url: string; readonly tls?: object };

/** The arguments of the ioredis constructor for an address. */
export interface Connection {
  /** A URL that ioredis reads itself. */
  readonly url?: string;
  readonly options: {
    readonly path?: string;
    readonly username?: string;
    readonly password?: string;
    readonly db?: number;
    readonly tls?: object;
    readonly sentinels?: { readonly host: string; readonly port: number }[];
    readonly name?: string;
    readonly sentinelUsername?: string;
    readonly sentinelPassword?: string;
    readonly sentinelTLS?: object;
    readonly enableTLSForSentinelMode?: boolean;
    readonly failoverDetector?: boolean;
  };
}

/** Whether the value is meant as an address, and not as a client. */
export function isAddress(value: unknown): value is RedisAddress {
  return typeof value === "string" || (isOptions(value) && "url" in value && !("call" in value));
}

/**
 * Returns the connection for an address.
 *
 * @param what its name in `configure()`, for messages
 * @throws {LockOptionError} if the address cannot be read
 */
export function connectionTo(address: RedisAddress, what: string): Connection {
  if (typeof address === "string") return readUrl(address, what);
  const expected = (wrong: string): LockOptionError =>
    new LockOptionError(
      `Expected \`${what}\` to be { url: "rediss://...", tls: { ca } }, got ${formatValue(address)}. Fix: correct \`${wrong}\`. \`tls\` takes the options of Node's tls.connect()`,
    );
  const { url, tls } = readOptions(address, ["url", "tls"], expected);
  if (typeof url !== "string") throw expected("url");
  if (tls !== undefined && !isOptions(tls)) throw expected("tls");
  const connection = readUrl(url, what);
  if (tls === undefined) return connection;
  // `tls` turns TLS on already. Without `rediss:` in the URL, ioredis cannot prefer its own TLS options to these.
  const plain = connection.url?.replace(/^rediss:/, "redis:");
  const { options } = connection;
  const forSentinels = options.sentinels === undefined ? {} : overTls(tls);
  return { ...(plain !== undefined && { url: plain }), options: { ...options, tls, ...forSentinels } };
}

function readUrl(url: string, what: string): Connection {
  if (/^(?:redis\+)?unix:/.test(url)) return readSocket(url, what);
  if (/^rediss?\+sentinel:/.test(url)) return readSentinel(url, what);
  if (!/^rediss?:\/\//.test(url)) {
    throw new LockOptionError(
      `Expected \`${what}\` to be an ioredis client or a redis:// URL, got ${withoutSecrets(url)}`,
    );
  }
  let path: string;
  try {
    path = new URL(url).pathname;
  } catch {
    throw unreadable(url, what);
  }
  // A `/` in a password ends the host. Then the path has the rest of the password in it, and is not the number of a database.
  if (!/^\/?\d*$/.test(path)) throw unreadable(url, what, " Put the database number after the host and `/`.");
  // A `?` or `#` in a password ends the host, too. Then the beginning of the password would be read as the host.
  if (/#|\?.*@/.test(url)) throw unreadable(url, what);
  return { url, options: {} };
}

/** A regular expression, because `new URL()` does not accept a user without a host. */
const SOCKET = /^(?:redis\+)?unix:\/\/(?:([^:@/?#]*)(?::([^@/?#]*))?@)?(\/[^?#]+)(?:\?([^#]*))?$/;

/** Reads the format of other clients: `unix://user:password@/run/redis.sock?db=1`. User and password may also be in the query. */
function readSocket(url: string, what: string): Connection {
  const [, user, secret, socket, query] = SOCKET.exec(url) ?? [];
  if (socket === undefined) throw unreadableSocket(url, what);
  try {
    const given = new Map(new URLSearchParams(query));
    const takeParameter = (...names: readonly string[]): string | undefined =>
      names.map((name) => [given.get(name), given.delete(name)] as const).find(([value]) => value)?.[0];
    const db = takeParameter("db");
    const username = decoded(user) ?? takeParameter("username", "user");
    const password = decoded(secret) ?? takeParameter("password", "pass");
    if (given.size > 0 || !/^\d*$/.test(db ?? "")) throw unreadableSocket(url, what);
    return {
      options: {
        path: decodeURIComponent(socket),
        ...(username !== undefined && { username }),
        ...(password !== undefined && { password }),
        ...(db !== undefined && { db: Number(db) }),
      },
    };
  } catch {
    throw unreadableSocket(url, what);
  }
}

/** A regular expression, because `new URL()` accepts only one host. */
const SENTINELS =
  /^redis(s?)\+sentinel:\/\/(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^@/?#]+)\/([^/?#]+)(?:\/(\d*))?(?:\?([^#]*))?$/;

/** Reads the format of other clients. The user and password of the sentinels themselves, if they have any, are in the query. */
function readSentinel(url: string, what: string): Connection {
  const [, isTls, user, secret, hosts = "", name, db, query] = SENTINELS.exec(url) ?? [];
  try {
    const sentinels = hosts.split(",").map((host) => hostAndPort(host));
    const given = new Map(new URLSearchParams(query));
    const [username, password] = [decoded(user), decoded(secret)];
    const [sentinelUsername, sentinelPassword] = [
      given.get("sentinel_username"),
      given.get("sentinel_password"),
    ];
    given.delete("sentinel_username");
    given.delete("sentinel_password");
    if (name === undefined || given.size > 0) throw unreadableSentinel(url, what);
    return {
      options: {
        sentinels,
        name: decodeURIComponent(name),
        // A master that hangs does not break its connection. The detector reconnects when the sentinels name another master.
        failoverDetector: true,
        ...(isTls !== "" && overTls({})),
        ...(username !== undefined && { username }),
        ...(password !== undefined && { password }),
        ...(db !== undefined && db !== "" && { db: Number(db) }),
        ...(sentinelUsername !== undefined && { sentinelUsername }),
        ...(sentinelPassword !== undefined && { sentinelPassword }),
      },
    };
  } catch {
    throw unreadableSentinel(url, what);
  }
}

const SENTINEL_PORT = 26_379;

/** @throws if the text is not a host */
function hostAndPort(text: string): { host: string; port: number } {
  const { hostname, port } = new URL(`sentinel://${text}`);
  if (hostname === "") throw new Error("no host");
  return { host: hostname.replace(/^\[(.*)\]$/, "$1"), port: port === "" ? SENTINEL_PORT : Number(port) };
}

function overTls(
  tls: object,
): Pick<Connection["options"], "tls" | "sentinelTLS" | "enableTLSForSentinelMode"> {
  return { tls, sentinelTLS: tls, enableTLSForSentinelMode: true };
}

function decoded(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : decodeURIComponent(text);
}

export function unreadable(url: string, what: string, why = ""): LockOptionError {
  return new LockOptionError(
    `Expected \`${what}\` to be a valid URL, such as redis://user:password@host:6379/0, got ${withoutSecrets(url)}. ${ENCODE}${why}`,
  );
}

function unreadableSocket(url: string, what: string): LockOptionError {
  return new LockOptionError(
    `Expected \`${what}\` to be a valid URL, such as unix:///run/redis.sock?db=0 or unix://user:password@/run/redis.sock, got ${withoutSecrets(url)}. ${ENCODE}`,
  );
}

function unreadableSentinel(url: string, what: string): LockOptionError {
  return new LockOptionError(
    `Expected \`${what}\` to be a valid URL, such as redis+sentinel://user:password@host:26379,host2:26379/master/0, got ${withoutSecrets(url)}. ${ENCODE}`,
  );
}

const ENCODE = "Fix: encode `@`, `/`, `?`, `#`, and `%` in a password with encodeURIComponent().";

/**
 * Returns what a message may show of a URL that cannot be read. The password may be anywhere in it, so only text that cannot be one is
 * shown.
 */
function withoutSecrets(url: string): string {
  if (url === "") return '""';
  if (/^\s/.test(url)) return "text that begins with a space";
  if (/^["'`]/.test(url)) return "text that begins with a quotation mark";
  if (/^[\w.-]+(:\d{1,5})?$/.test(url) && !url.includes("_")) return JSON.stringify(url);
  return JSON.stringify(/^[a-z][a-z0-9+.-]*:\/\//i.exec(url)?.[0] ?? "").replace(/"$/, '***"');
}
