import { creationOf, placeIn, versionOf, type DeclaredClient } from "./declared-client";
import type { Project } from "./project";

/** A kind of client that Lockweave accepts. */
interface Kind {
  /** Its name in the list of what was found. */
  readonly name: string;
  readonly packageName: string;
  /** Matches code that creates or imports a client. */
  readonly creation: RegExp;
  /** Whether Lockweave can also connect to a URL with this package. */
  readonly takesUrls?: true;
  /** Whether the package exports the client itself, with the name `redis`. */
  readonly isImported?: true;
  /** The argument of `configure()` for such a client, unless it is `{ redis: client }`. */
  readonly argument?: string;
  /** Text to add to a proposal of such a client. */
  readonly about?: string;
}

/** The kinds of clients. Lockweave prefers the first ones. */
const KINDS: readonly Kind[] = [
  {
    name: "ioredis",
    packageName: "ioredis",
    creation: /\bnew\s+(?:\w+\.)?(?:Redis|IORedis|Cluster)\s*\(/i,
    takesUrls: true,
  },
  {
    name: "node-redis",
    packageName: "redis",
    creation: /\bcreate(?:Client|ClientPool|Sentinel|Cluster)\s*\(/,
    takesUrls: true,
  },
  {
    name: "iovalkey",
    packageName: "iovalkey",
    creation: /\bnew\s+(?:\w+\.)?(?:Redis|Valkey|IOValkey|Cluster)\s*\(/i,
  },
  {
    name: "Valkey GLIDE",
    packageName: "@valkey/valkey-glide",
    creation: /\bGlide(?:Cluster)?Client\s*\.\s*createClient\s*\(/,
    argument: "{ redis: { glide: client, config } }",
    about: " `config` is what its `createClient()` got.",
  },
  {
    name: "Bun's RedisClient",
    packageName: "bun",
    creation: /\bnew\s+(?:\w+\.)?RedisClient\s*\(/,
    about: " Give it a large `maxRetries`. By default, it stops reconnecting after about 30 seconds.",
  },
  {
    name: "Bun's redis",
    packageName: "bun",
    creation: /\bimport\s*\{[^}]*\bredis\b[^}]*\}\s*from\s*["']bun["']/,
    isImported: true,
    argument: "{ redis }",
    about:
      " It stops reconnecting after about 30 seconds. A `new RedisClient()` with a large `maxRetries` does not.",
  },
];

/** The packages of Redis clients that Lockweave accepts. */
export const REDIS_PACKAGES = KINDS.map(({ packageName }) => packageName).filter((name) => name !== "bun");

/** A Redis client of the project. */
export interface RedisClient extends DeclaredClient<string> {
  readonly kind: Kind;
}

/** Returns the client that the project creates, or else one whose package it declares. A version that is too old counts as absent. */
export function redisClientOf(project: Project): RedisClient | undefined {
  const clients = KINDS.flatMap((kind): RedisClient[] => {
    const { name, packageName } = kind;
    const isBuiltIn = packageName === "bun";
    if (!isBuiltIn && (!project.dependsOn(packageName) || isTooOld(project, packageName))) return [];
    const creation = creationOf(project, packageName, kind.creation);
    return isBuiltIn && creation === undefined ? [] : [{ name, creation, kind }];
  });
  return clients.find(({ creation }) => creation !== undefined) ?? clients[0];
}

/** Returns a line about the client for the list of what was found. */
export function foundRedisClient(project: Project): string | undefined {
  const client = redisClientOf(project);
  if (client === undefined) {
    return project.dependsOn("redis")
      ? "node-redis: this version is too old, so Lockweave connects with ioredis instead"
      : undefined;
  }
  const { name, creation, kind } = client;
  if (creation === undefined) {
    return name === "ioredis" ? undefined : `${name}: \`${kind.packageName}\` in package.json`;
  }
  return `${name}: ${placeIn(creation)} ${verbOf(kind)} a client`;
}

/** Returns the argument of `configure()` for the client, and what to say about it. */
export function proposalFor(
  { name, creation, kind }: RedisClient,
  urlArgument: string,
): { readonly argument: string; readonly about: string } {
  const { argument = "{ redis: client }", about = "", takesUrls = false } = kind;
  if (creation === undefined && takesUrls) return { argument: urlArgument, about: "" };
  const variable = kind.isImported === true ? "redis" : "client";
  const which =
    creation === undefined ? `your client of ${name}` : `the one that ${placeIn(creation)} ${verbOf(kind)}`;
  const url = takesUrls
    ? `A URL works, too: \`configure(${urlArgument})\`.`
    : "A URL needs ioredis or redis.";
  return { argument, about: ` \`${variable}\` is ${which}.${about} ${url}` };
}

function verbOf({ isImported }: Kind): string {
  return isImported === true ? "imports" : "creates";
}

/** Versions of node-redis before 5 have another API. */
function isTooOld(project: Project, packageName: string): boolean {
  return packageName === "redis" && Number(/\d+/.exec(versionOf(project, "redis"))?.[0] ?? Infinity) < 5;
}
