import { LockOptionError } from "../../base/errors";
import { isOptions, readOptions } from "../../base/options";
import { formatValue } from "../../base/format-value";

/** The client libraries that can connect to an address, by the names of their packages. */
export const LIBRARIES = ["ioredis", "redis"] as const;
export type LibraryName = (typeof LIBRARIES)[number];

/**
 * The address of a Redis server: `redis://host`, `rediss://host` for TLS, `unix:///path/to/redis.sock?db=0` for a socket, or
 * `redis+sentinel://host:26379,host2:26379/master` for the master that sentinels name. In an object, `tls` has the options of Node's
 * `tls.connect()`, as in `{ url: "rediss://host", tls: { ca } }`. `client` names the package that connects. By default, it is the one that the
 * application's package.json declares: `ioredis`, or else `redis` (node-redis).
 */
export type RedisAddress =
  string | { readonly url: string; readonly tls?: object; readonly client?: "ioredis" | "redis" };

/** The parts of an address. The adapter of each client library translates them into options of the library. */
export interface Connection {
  /** Without a host, a path, and sentinels, the server is on this machine. */
  readonly host?: string;
  readonly port?: number;
  /** A socket file. */
  readonly path?: string;
  readonly sentinels?: Sentinels;
  readonly username?: string;
  readonly password?: string;
  readonly database?: number;
  /** The options of `tls.connect()`, if the connection uses TLS. */
  readonly tls?: object;
  /** The other parameters of a `redis://` URL. They are options of the client library. */
  readonly parameters: Readonly<Record<string, string>>;
  /** The library that the user chose. */
  readonly client?: LibraryName;
}

/** The sentinels that name the server. */
export interface Sentinels {
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** The name of the master. */
  readonly name: string;
  readonly username?: string;
  readonly password?: string;
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
  const expected = (wrong: string, fix = `correct \`${wrong}\``): LockOptionError =>
    new LockOptionError(
      `Expected \`${what}\` to be { url: "rediss://...", tls: { ca } }, got ${formatValue(address)}. Fix: ${fix}. \`tls\` takes the options of Node's tls.connect()`,
    );
  const { url, tls, client } = readOptions(address, ["url", "tls", "client"], expected);
  if (typeof url !== "string") throw expected("url");
  if (tls !== undefined && !isOptions(tls)) throw expected("tls");
  if (client !== undefined && !LIBRARIES.includes(client)) {
    throw expected("client", 'set `client` to "ioredis" or "redis", or leave it out');
  }
  return {
    ...readUrl(url, what),
    ...(tls !== undefined && { tls }),
    ...(client !== undefined && { client }),
  };
}

/** Returns the first part of an error about a value that is neither a client nor an address. */
export function expectedRedis(what: string): string {
  return `Expected \`${what}\` to be a client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun, or a redis:// URL`;
}

function readUrl(given: string, what: string): Connection {
  const url = given.replace(/^[a-z+]+:/i, (scheme) => scheme.toLowerCase()); // RFC 3986, section 3.1
  if (/^(?:redis\+)?unix:/.test(url)) return readSocket(url, what);
  if (/^rediss?\+sentinel:/.test(url)) return readSentinel(url, what);
  if (!/^rediss?:\/\//.test(url)) {
    throw new LockOptionError(`${expectedRedis(what)}, got ${withoutSecrets(url)}`);
  }
  try {
    return readHost(url, what);
  } catch (error) {
    // The error must not be the cause: it contains the whole URL, and so the password.
    throw error instanceof LockOptionError ? error : unreadable(url, what);
  }
}

function readHost(url: string, what: string): Connection {
  const { protocol, hostname, port, username, password, pathname, searchParams } = new URL(url);
  // A `/` in a password ends the host. Then the path has the rest of the password in it, and is not the number of a database.
  if (!/^\/?\d*$/.test(pathname))
    throw unreadable(url, what, ". Put the database number after the host and `/`");
  // A `?` or `#` in a password ends the host, too. Then the beginning of the password would be read as the host.
  if (/#|\?.*@/.test(url)) throw unreadable(url, what);
  const { db, username: user, password: secret, ...parameters } = Object.fromEntries(searchParams);
  const database = pathname.replace("/", "") || db;
  if (database !== undefined && !/^\d*$/.test(database)) throw unreadable(url, what);
  checkNumbers(parameters, what);
  const hasLogin = username !== "" || password !== "";
  const login = hasLogin ? [decoded(username), decodeURIComponent(password)] : [user, secret];
  return {
    ...(hostname !== "" && { host: withoutBrackets(hostname) }),
    ...(port !== "" && { port: Number(port) }),
    ...credentials(login[0], login[1]),
    ...(database !== undefined && database !== "" && { database: Number(database) }),
    ...(protocol === "rediss:" && { tls: {} }),
    parameters,
  };
}

/** The parameters that are numbers, and an example of each. */
const NUMBERS = { family: "4", connectTimeout: "5000" } as const;

function checkNumbers(parameters: Readonly<Record<string, string>>, what: string): void {
  for (const [name, example] of Object.entries(NUMBERS)) {
    if (!/^\d+$/.test(parameters[name] ?? example)) {
      // The value may be a part of a password.
      throw new LockOptionError(
        `Expected the parameter \`${name}\` of the URL in \`${what}\` to be a number, such as ${name}=${example}. Fix: correct or remove it`,
      );
    }
  }
}

function credentials(
  username: string | undefined,
  password: string | undefined,
): Pick<Connection, "username" | "password"> {
  return { ...(username !== undefined && { username }), ...(password !== undefined && { password }) };
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
      path: decodeURIComponent(socket),
      ...credentials(username, password),
      ...(db !== undefined && { database: Number(db) }),
      parameters: {},
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
    const given = new Map(new URLSearchParams(query));
    const ofSentinels = credentials(given.get("sentinel_username"), given.get("sentinel_password"));
    given.delete("sentinel_username");
    given.delete("sentinel_password");
    if (name === undefined || given.size > 0) throw unreadableSentinel(url, what);
    return {
      sentinels: {
        hosts: hosts.split(",").map((host) => hostAndPort(host)),
        name: decodeURIComponent(name),
        ...ofSentinels,
      },
      ...credentials(decoded(user), decoded(secret)),
      ...(db !== undefined && db !== "" && { database: Number(db) }),
      ...(isTls !== "" && { tls: {} }),
      parameters: {},
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
  return { host: withoutBrackets(hostname), port: port === "" ? SENTINEL_PORT : Number(port) };
}

/** Returns an IPv6 address without the brackets that it has in a URL. */
function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

function decoded(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : decodeURIComponent(text);
}

function unreadable(url: string, what: string, why = ""): LockOptionError {
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

const ENCODE = "Fix: encode `@`, `/`, `?`, `#`, and `%` in a password with encodeURIComponent()";

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
