import type { NodeRedis, NodeRedisOptions } from "./client";

export type CreateClient = (options: NodeRedisOptions) => NodeRedis;

interface Exports {
  readonly createClient?: CreateClient;
  /** Version 4 does not have it. Version 5.0.0 does, but lacks `createClientPool()`. */
  readonly createSentinel?: unknown;
  /** All exports, if a bundler does not find the names of the CommonJS exports. */
  readonly default?: Exports;
}

/** Returns the function that creates a client, or undefined if this node-redis is too old. */
export function createClientIn(redis: unknown): CreateClient | undefined {
  const { default: all } = redis as Exports;
  const { createClient, createSentinel } = { ...all, ...(redis as Exports) };
  return typeof createSentinel === "function" ? createClient : undefined;
}
