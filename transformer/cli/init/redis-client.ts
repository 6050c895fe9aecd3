import { creationOf, placeIn, versionOf, type DeclaredClient } from "./declared-client";
import type { Project } from "./project";

const CREATION = {
  ioredis: /\bnew\s+(?:\w+\.)?(?:Redis|IORedis|Cluster)\s*\(/i,
  redis: /\bcreate(?:Client|ClientPool|Sentinel|Cluster)\s*\(/,
} as const;

/** The clients of Redis that Lockweave accepts. */
export const REDIS_PACKAGES = ["ioredis", "redis", "iovalkey", "@valkey/valkey-glide"] as const;

/**
 * Returns the client library that package.json lists and that can connect to a URL, ioredis first. A version that is too old counts as
 * absent.
 */
export function redisClientOf(project: Project): DeclaredClient<"ioredis" | "node-redis"> | undefined {
  if (project.dependsOn("ioredis"))
    return { name: "ioredis", creation: creationOf(project, "ioredis", CREATION.ioredis) };
  if (!project.dependsOn("redis") || isTooOld(project)) return undefined;
  return { name: "node-redis", creation: creationOf(project, "redis", CREATION.redis) };
}

/** Returns a line about the client for the list of what was found. */
export function foundRedisClient(project: Project): string | undefined {
  const client = redisClientOf(project);
  if (client === undefined) {
    return project.dependsOn("redis")
      ? "node-redis: this version is too old, so Lockweave connects with ioredis instead"
      : undefined;
  }
  const { name, creation } = client;
  if (creation !== undefined) return `${name}: ${placeIn(creation)} creates a client`;
  return name === "node-redis" ? `${name}: \`redis\` in package.json` : undefined;
}

/** Versions before 5 have another API. */
function isTooOld(project: Project): boolean {
  return Number(/\d+/.exec(versionOf(project, "redis"))?.[0] ?? Infinity) < 5;
}
