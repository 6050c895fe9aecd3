import type { BunRedisClient } from "../client";
import type { ClientPort } from "../client-port";
import type { BunRedis } from "./client";
import { BunNode } from "./node";

/** Whether it is Bun's built-in `RedisClient`. */
export function isBunRedis(client: unknown): client is BunRedisClient {
  if (typeof client !== "object" || client === null || !("onconnect" in client)) return false;
  const { connected, bufferedAmount, send } = client as Partial<BunRedisClient>;
  return typeof connected === "boolean" && typeof bufferedAmount === "number" && typeof send === "function";
}

/** @param client a client for which {@link isBunRedis} is true */
export function portOfBunRedis(client: BunRedisClient): ClientPort {
  return new BunNode(client as unknown as BunRedis);
}
