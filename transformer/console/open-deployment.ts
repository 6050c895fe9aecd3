import type { Deployment } from "./port/deployment";
import { openPostgres, type PostgresTarget } from "./postgres/postgres-deployment";
import { openRedis, type RedisTarget } from "./redis/redis-deployment";

/** The server of the locks, and the keys to show. */
export type Target = RedisTarget | PostgresTarget;

/**
 * Connects to the servers that store the locks.
 *
 * @throws {UsageError} if they cannot be reached or read
 */
export async function openDeployment(target: Target): Promise<Deployment> {
  return "redis" in target ? await openRedis(target) : await openPostgres(target);
}
