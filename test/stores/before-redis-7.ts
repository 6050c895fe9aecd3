import type { RedisClient } from "../../runtime/stores/redis/client";

const SYNTAX_ERROR = "ERR syntax error";

/** A client of a server before Redis 7, which knows no SET with both NX and GET, not even in a script. */
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
