import type { RedisClient } from "../../runtime/stores/redis/client";

const SYNTAX_ERROR = "ERR syntax error";

/** A client that behaves as if the server is older than Redis 7 and rejects SET with both NX and GET. */
export function beforeRedis7(client: RedisClient): { client: RedisClient; refusals: () => number } {
  let refusals = 0;
  const old: RedisClient = Object.create(client, {
    call: {
      value: async (command: string, ...args: (string | number)[]) => {
        if (command === "set" && args.includes("NX") && args.includes("GET")) {
          refusals += 1;
          throw new Error(SYNTAX_ERROR);
        }
        return await client.call(command, ...args);
      },
    },
  }) as RedisClient;
  return { client: old, refusals: () => refusals };
}
